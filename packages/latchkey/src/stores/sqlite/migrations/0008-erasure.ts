/** What migration 8 brings: erasing a tenant. Files hold exactly this text: it never changes. */
export const erasureTables: string = `
ALTER TABLE latchkey_outbox ADD COLUMN scope TEXT;
ALTER TABLE latchkey_audit ADD COLUMN scope TEXT;
CREATE INDEX latchkey_outbox_of_scope ON latchkey_outbox (scope) WHERE scope IS NOT NULL;
CREATE INDEX latchkey_audit_of_scope ON latchkey_audit (scope) WHERE scope IS NOT NULL;

-- scope is null when nothing of it is left.
CREATE TABLE latchkey_erasures (
  scope_hash   TEXT PRIMARY KEY,
  scope        TEXT,
  marked_at_ms INTEGER NOT NULL,
  ended_at_ms  INTEGER
) STRICT;
INSERT INTO latchkey_migrations VALUES (8, 'erasing a tenant', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
