-- Codes of long identifiers, by which a search finds one among millions. A row is for up to
-- eight events that arrived one after another; its number is that of the first.
CREATE VIRTUAL TABLE anyhook_identifiers USING fts5 (
    codes, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
-- Events with lower numbers are not in it yet.
INSERT INTO anyhook_totals (name, value)
    SELECT 'identifiers_from', COALESCE(MAX(seq), 0) + 1 FROM anyhook_events;
