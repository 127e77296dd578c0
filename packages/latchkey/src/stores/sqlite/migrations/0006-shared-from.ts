/** What migration 6 brings. Files hold exactly this text: it never changes. */
export const sharedFromColumn: string = `
-- From here on a step says which processes may share the file after it: those that know at least this step.
ALTER TABLE latchkey_migrations ADD COLUMN shared_from INTEGER;
INSERT INTO latchkey_migrations VALUES (6, 'who may share the file', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
