/** What migration 7 brings. Files hold exactly this text: it never changes. */
export const scopeIndex: string = `
-- An operator lists one tenant's rows without a scan. Written at the grant only: a scope never changes. Not with the id: its 36
-- characters would cost every row more than sorting costs the operator.
CREATE INDEX latchkey_keys_scope ON latchkey_keys (scope);
INSERT INTO latchkey_migrations VALUES (7, 'rows of a scope', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
