/** One guarded request in a process of its own, whose handler ends when it is told to. Tells that it runs, and what was answered. */
import pg from 'pg'
import { engine } from '../../../src/engine/internal.ts'
import { createLatchkey } from '../../../src/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { answered, executeRequest, operationName, told } from '../fixture.ts'
import { silentTelemetry } from '../../../src/ports/telemetry.ts'

const pool = new pg.Pool({ connectionString: process.argv[2] ?? '', max: 4 })
pool.on('error', () => {})
const latchkey = createLatchkey({ store: postgresStore({ pool }), scope: () => 'acme', telemetry: silentTelemetry })
const operation = latchkey.guarded(operationName, { onFailure: 'hold', leaseMs: 2_000 })
const answer = await operation[engine].execute(executeRequest('killed'), async () => {
  const ended = new Promise(resolve => process.once('message', resolve))
  process.send?.('running')
  await ended
  return answered(201)
})
process.send?.(told(answer))
process.on('disconnect', () => process.exit(0))
