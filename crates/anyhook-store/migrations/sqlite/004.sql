-- The events of days without their latencies, which take far more to read.
CREATE INDEX anyhook_rollup_days ON anyhook_rollups (start, facet, events)
    WHERE level = 1 AND origin = 0;
