-- Events of older versions; moved to the tables below in small steps.
ALTER TABLE anyhook_events RENAME TO anyhook_old_events;
ALTER TABLE anyhook_runs RENAME TO anyhook_old_runs;
-- Only the order of arrival is asked of them.
DROP INDEX anyhook_events_time, anyhook_events_session, anyhook_events_agent, anyhook_events_tool,
    anyhook_events_machine, anyhook_events_decision, anyhook_events_event, anyhook_events_type,
    anyhook_events_native, anyhook_events_project, anyhook_events_user, anyhook_events_workflow;

-- What an event is. A few hundred rows: events refer to them by number.
CREATE TABLE anyhook_facets (
    facet        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
    origin      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine     TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    project_id  TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    UNIQUE (machine, user_id, project_id, workflow_id)
);

-- A hook, by name and content: the same hook in a thousand homes is one row.
CREATE TABLE anyhook_hooks (
    hook     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     TEXT NOT NULL,
    content  TEXT NOT NULL,
    manifest TEXT NOT NULL,
    UNIQUE (name, content)
);

CREATE TABLE anyhook_sessions (
    session    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id TEXT NOT NULL,
    agent      TEXT NOT NULL,
    first_us   BIGINT NOT NULL,
    last_us    BIGINT NOT NULL,
    last_seq   BIGINT NOT NULL,
    events     BIGINT NOT NULL,
    tools      BIGINT NOT NULL,
    denials    BIGINT NOT NULL,
    asks       BIGINT NOT NULL,
    cwd        TEXT,
    machine    TEXT,
    UNIQUE (session_id, agent)
);
CREATE INDEX anyhook_session_last ON anyhook_sessions (last_us, last_seq);
CREATE INDEX anyhook_session_agent ON anyhook_sessions (agent, last_us, last_seq);

CREATE SEQUENCE anyhook_seq;
SELECT setval('anyhook_seq', MAX(seq)) FROM anyhook_old_events HAVING MAX(seq) > 0;

-- One partition for each day, made by the first event of that day; retention drops them.
CREATE TABLE anyhook_events (
    seq         BIGINT NOT NULL,
    time_us     BIGINT NOT NULL,
    duration_ms DOUBLE PRECISION NOT NULL,
    session     BIGINT,
    facet       BIGINT NOT NULL,
    origin      BIGINT NOT NULL,
    id          BYTEA NOT NULL,
    -- The hooks that ran, in a form of anyhook's own.
    runs        BYTEA NOT NULL,
    -- The record, compressed.
    body        BYTEA NOT NULL,
    -- Lowercase, for searching.
    text        TEXT NOT NULL
) PARTITION BY RANGE (time_us);
-- Beside the other columns, where a search looks at it without a detour.
ALTER TABLE anyhook_events ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE anyhook_events ALTER COLUMN text SET STORAGE MAIN;

-- The partitions. `part` is the day since 1970; the lowest number is that of the days
-- that are too old or too far in the future to have a partition.
CREATE TABLE anyhook_parts (
    part    BIGINT PRIMARY KEY,
    name    TEXT NOT NULL,
    min_us  BIGINT NOT NULL,
    max_us  BIGINT NOT NULL,
    min_seq BIGINT NOT NULL,
    max_seq BIGINT NOT NULL,
    events  BIGINT NOT NULL,
    bytes   BIGINT NOT NULL
);

-- Ids that do not say on which day to look for them. An id with a time in it (UUID version 7)
-- is unique by the index of its partition.
CREATE TABLE anyhook_ids (
    id      BYTEA PRIMARY KEY,
    time_us BIGINT NOT NULL
);
CREATE INDEX anyhook_ids_time ON anyhook_ids (time_us);

-- Sums by hour (level 0), day (level 1) and of all time (level 2). Origin 0: of all origins.
CREATE TABLE anyhook_rollups (
    level   BIGINT NOT NULL,
    start   BIGINT NOT NULL,
    origin  BIGINT NOT NULL,
    facet   BIGINT NOT NULL,
    events  BIGINT NOT NULL,
    max_ms  DOUBLE PRECISION NOT NULL,
    -- Of an hour: how many in each minute; of a day: in each hour.
    minutes BYTEA NOT NULL,
    sketch  BYTEA NOT NULL,
    PRIMARY KEY (level, start, origin, facet)
);
-- On which days there are events of a facet or an origin.
CREATE INDEX anyhook_rollup_days ON anyhook_rollups (origin, facet, start) INCLUDE (events)
    WHERE level = 1;

CREATE TABLE anyhook_hook_rollups (
    level    BIGINT NOT NULL,
    start    BIGINT NOT NULL,
    origin   BIGINT NOT NULL,
    facet    BIGINT NOT NULL,
    hook     BIGINT NOT NULL,
    runs     BIGINT NOT NULL,
    denials  BIGINT NOT NULL,
    troubles BIGINT NOT NULL,
    max_ms   DOUBLE PRECISION NOT NULL,
    sketch   BYTEA NOT NULL,
    PRIMARY KEY (level, start, origin, facet, hook)
);

CREATE TABLE anyhook_dictionaries (
    number BIGINT PRIMARY KEY,
    bytes  BYTEA NOT NULL
);
