-- Events of older versions; moved to the tables below in small steps.
ALTER TABLE anyhook_events RENAME TO anyhook_old_events;
ALTER TABLE anyhook_runs RENAME TO anyhook_old_runs;

-- What an event is. A few hundred rows: events refer to them by number.
CREATE TABLE anyhook_facets (
    facet        INTEGER PRIMARY KEY,
    kind         TEXT NOT NULL,
    agent        TEXT NOT NULL,
    event        TEXT NOT NULL,
    type         TEXT NOT NULL,
    native_event TEXT NOT NULL,
    tool         TEXT NOT NULL,
    decision     TEXT NOT NULL,
    UNIQUE (agent, event, tool, decision, native_event, type, kind)
);

-- Where an event comes from.
CREATE TABLE anyhook_origins (
    origin      INTEGER PRIMARY KEY,
    machine     TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    project_id  TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    UNIQUE (machine, user_id, project_id, workflow_id)
);

-- A hook, by name and content: the same hook in a thousand homes is one row.
CREATE TABLE anyhook_hooks (
    hook     INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    content  TEXT NOT NULL,
    manifest TEXT NOT NULL,
    UNIQUE (name, content)
);

CREATE TABLE anyhook_sessions (
    session    INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    agent      TEXT NOT NULL,
    first_us   INTEGER NOT NULL,
    last_us    INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    events     INTEGER NOT NULL,
    tools      INTEGER NOT NULL,
    denials    INTEGER NOT NULL,
    asks       INTEGER NOT NULL,
    cwd        TEXT,
    machine    TEXT,
    UNIQUE (session_id, agent)
);
CREATE INDEX anyhook_session_last ON anyhook_sessions (last_us, last_seq);
CREATE INDEX anyhook_session_agent ON anyhook_sessions (agent, last_us, last_seq);

CREATE TABLE anyhook_events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB NOT NULL,
    time_us     INTEGER NOT NULL,
    facet       INTEGER NOT NULL,
    origin      INTEGER NOT NULL,
    session     INTEGER,
    duration_ms REAL NOT NULL,
    -- The hooks that ran, in a form of anyhook's own.
    runs        BLOB NOT NULL,
    -- The record, compressed.
    body        BLOB NOT NULL
);
CREATE UNIQUE INDEX anyhook_event_id ON anyhook_events (id);
CREATE INDEX anyhook_event_time ON anyhook_events (time_us);
CREATE INDEX anyhook_event_facet ON anyhook_events (facet, time_us);
CREATE INDEX anyhook_event_origin ON anyhook_events (origin, time_us);
CREATE INDEX anyhook_event_session ON anyhook_events (session, time_us) WHERE session IS NOT NULL;
-- Numbers are not used again.
INSERT INTO sqlite_sequence (name, seq)
    SELECT 'anyhook_events', COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'anyhook_old_events';

-- Sums by hour (level 0), day (level 1) and of all time (level 2). Origin 0: of all origins.
CREATE TABLE anyhook_rollups (
    level   INTEGER NOT NULL,
    start   INTEGER NOT NULL,
    origin  INTEGER NOT NULL,
    facet   INTEGER NOT NULL,
    events  INTEGER NOT NULL,
    max_ms  REAL NOT NULL,
    -- Of an hour: how many in each minute; of a day: in each hour.
    minutes BLOB NOT NULL,
    sketch  BLOB NOT NULL,
    PRIMARY KEY (level, start, origin, facet)
) WITHOUT ROWID;

CREATE TABLE anyhook_hook_rollups (
    level    INTEGER NOT NULL,
    start    INTEGER NOT NULL,
    origin   INTEGER NOT NULL,
    facet    INTEGER NOT NULL,
    hook     INTEGER NOT NULL,
    runs     INTEGER NOT NULL,
    denials  INTEGER NOT NULL,
    troubles INTEGER NOT NULL,
    max_ms   REAL NOT NULL,
    sketch   BLOB NOT NULL,
    PRIMARY KEY (level, start, origin, facet, hook)
) WITHOUT ROWID;

-- The times of 1024 events that arrived one after another: a search by arrival skips the
-- blocks that are too old or too new.
CREATE TABLE anyhook_blocks (
    block  INTEGER PRIMARY KEY,
    min_us INTEGER NOT NULL,
    max_us INTEGER NOT NULL
);

CREATE VIRTUAL TABLE anyhook_search USING fts5 (
    text, content = '', contentless_delete = 1, detail = none,
    tokenize = 'trigram case_sensitive 1'
);

CREATE TABLE anyhook_dictionaries (
    number INTEGER PRIMARY KEY,
    bytes  BLOB NOT NULL
);

CREATE TABLE anyhook_totals (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO anyhook_totals (name, value) VALUES ('events', 0), ('bytes', 0);
