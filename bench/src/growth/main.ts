/**
 * `npm run preload --workspace @latchkey/bench -- postgres://… 10000000`: fills an empty database with completed rows, for
 * experiments by hand. The benchmark does the same with a database of its own.
 */
import { bundlePrograms } from '../machine/bundle.ts'
import { startServer } from '../server/server-process.ts'
import { subjectOf } from '../subjects.ts'
import { preload } from './preload.ts'

const [place, rows = '10000000'] = process.argv.slice(2)
if (place === undefined) {
  console.error('preload <address of an empty PostgreSQL database> [rows]')
  process.exit(2)
}
const { server: program } = await bundlePrograms()
const argument = { subject: subjectOf('postgres'), place, workMs: 0, peerFile: undefined, counted: false }
const server = await startServer(program, argument)
await fetch(`http://127.0.0.1:${server.port}/orders`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'idempotency-key': 'seed' },
  body: '{"sku":"tea"}',
})
await server.stop()
const startedAt = performance.now()
await preload({ url: place, rows: Number(rows), expired: 0 })
console.log(`${rows} rows in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`)
