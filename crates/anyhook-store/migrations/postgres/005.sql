-- Search: which groups of three characters some events that arrived one after another contain.
-- Smaller than an index of the texts themselves, and the texts need not be stored.
CREATE TABLE anyhook_search (
    part    BIGINT NOT NULL,
    min_seq BIGINT NOT NULL,
    max_seq BIGINT NOT NULL,
    max_us  BIGINT NOT NULL,
    -- Hashes, in the order of their numbers.
    grams   SMALLINT[] NOT NULL
);
ALTER TABLE anyhook_search ALTER COLUMN grams SET STORAGE EXTERNAL;
CREATE INDEX anyhook_search_part ON anyhook_search (part, max_us);
CREATE INDEX anyhook_search_grams ON anyhook_search USING gin (grams) WITH (gin_pending_list_limit = 512);
-- Every index is used by its condition; statistics of a large array only cost time.
ALTER TABLE anyhook_search ALTER COLUMN grams SET STATISTICS 0;

-- The last event of a partition that `anyhook_search` knows, and how many came after it.
ALTER TABLE anyhook_parts ADD COLUMN grouped_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE anyhook_parts ADD COLUMN pending BIGINT NOT NULL DEFAULT 0;
UPDATE anyhook_parts SET pending = events;

-- How many indexes of a partition were written anew after its day was over: those that are
-- filled in several places are half empty.
ALTER TABLE anyhook_parts ADD COLUMN compacted BIGINT NOT NULL DEFAULT 0;

-- The rows of this hour change all the time, and every change leaves a row behind.
ALTER TABLE anyhook_rollups SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 1);
ALTER TABLE anyhook_hook_rollups SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 1);

-- Partitions of version 4 had an index of the texts.
DO $$
DECLARE found REGCLASS;
BEGIN
    FOR found IN
        SELECT i.indexrelid FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_am a ON a.oid = c.relam AND a.amname = 'gin'
        JOIN pg_inherits h ON h.inhrelid = i.indrelid
        WHERE h.inhparent = 'anyhook_events'::regclass
    LOOP
        EXECUTE format('DROP INDEX %s', found);
    END LOOP;
END $$;
