/** What migration 12 brings: names under which rows are found. Files hold exactly this text: it never changes. */
export const referenceTable: string = `
-- ref is what is searched for: the text, or its keyed hash, with the text sealed beside it.
CREATE TABLE latchkey_key_references (
  seq    INTEGER PRIMARY KEY,
  id     TEXT NOT NULL,
  ref    TEXT NOT NULL,
  sealed TEXT,
  at_ms  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX latchkey_key_references_of ON latchkey_key_references (id, ref);
CREATE INDEX latchkey_key_references_by_ref ON latchkey_key_references (ref, seq);
INSERT INTO latchkey_migrations VALUES (12, 'names under which rows are found', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
