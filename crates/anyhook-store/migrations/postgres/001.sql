CREATE TABLE anyhook_events (
    seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    time_us      BIGINT NOT NULL,
    kind         TEXT NOT NULL,
    agent        TEXT NOT NULL,
    event        TEXT NOT NULL,
    type         TEXT NOT NULL,
    native_event TEXT,
    session_id   TEXT,
    machine      TEXT,
    cwd          TEXT,
    tool         TEXT,
    detail       TEXT,
    decision     TEXT,
    reason       TEXT,
    duration_ms  DOUBLE PRECISION NOT NULL,
    hooks        BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    text         TEXT NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX anyhook_events_time ON anyhook_events (time_us, seq);
CREATE INDEX anyhook_events_session ON anyhook_events (session_id, time_us);

CREATE TABLE anyhook_runs (
    seq         BIGINT NOT NULL REFERENCES anyhook_events (seq) ON DELETE CASCADE,
    pos         BIGINT NOT NULL,
    hook        TEXT NOT NULL,
    manifest    TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    duration_ms DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (seq, pos)
);

CREATE TABLE anyhook_files (
    source TEXT NOT NULL,
    file   TEXT NOT NULL,
    pos    BIGINT NOT NULL,
    PRIMARY KEY (source, file)
);
