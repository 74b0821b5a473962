CREATE TABLE anyhook_events (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    time_us      INTEGER NOT NULL,
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
    duration_ms  REAL NOT NULL,
    hooks        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    text         TEXT NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX anyhook_events_time ON anyhook_events (time_us, seq);
CREATE INDEX anyhook_events_session ON anyhook_events (session_id, time_us);

CREATE TABLE anyhook_runs (
    seq         INTEGER NOT NULL REFERENCES anyhook_events (seq) ON DELETE CASCADE,
    pos         INTEGER NOT NULL,
    hook        TEXT NOT NULL,
    manifest    TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    duration_ms REAL NOT NULL,
    PRIMARY KEY (seq, pos)
) WITHOUT ROWID;

CREATE TABLE anyhook_files (
    source TEXT NOT NULL,
    file   TEXT NOT NULL,
    pos    INTEGER NOT NULL,
    PRIMARY KEY (source, file)
) WITHOUT ROWID;
