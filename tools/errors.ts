// npm run errors     makes every mistake of test/wrong-setups, and writes what each prints into docs/guides/errors.md
import { readFileSync, writeFileSync } from 'node:fs'
import { installPostgres } from '../test/servers/install-postgres.ts'
import { findPostgres, startPostgres } from '../test/servers/postgres.ts'
import { setupTable, withSetupTable } from './errors/table.ts'

if (findPostgres().kind === 'missing') installPostgres()
const server = await startPostgres()
try {
  const guide = new URL('../docs/guides/errors.md', import.meta.url)
  writeFileSync(guide, withSetupTable(readFileSync(guide, 'utf8'), await setupTable(server.url)))
} finally {
  await server.stop()
}
