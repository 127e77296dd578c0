import { describe, expect, it } from 'vitest'
import pg from 'pg'
import { unavailable } from '../../src/engine/answer.ts'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import { singleTenant } from '../../src/engine/request.ts'
import { outcomeOf } from '../../src/engine/run-function.ts'
import { LatchkeyError } from '../../src/ports/errors.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { faultyStore, latchkeyOn, runRequest } from './fixture.ts'

const notMigrated = () =>
  Promise.reject(new LatchkeyError('store-not-migrated', 'the tables are missing: call `await store.migrate()`'))

describe('a run that is refused', () => {
  it('rejects with the code and the text of the fault that the store answers with', async () => {
    const { store, ...faults } = faultyStore()
    faults.break('claim', notMigrated)
    const operation = latchkeyOn(store).guarded('payments.create', { onFailure: 'hold' })
    await expect(operation.run(runRequest('a'), () => 1)).rejects.toMatchObject({
      code: 'store-not-migrated',
      message: 'the tables are missing: call `await store.migrate()`',
    })
  })

  it('says beside the fault that accepted work may run later', () => {
    const fault = new LatchkeyError('store-read-only', 'the database is a standby: connect to the primary')
    const thrown = () => outcomeOf('exports.create', unavailable(fault, true))
    expect(thrown).toThrow(expect.objectContaining({ code: 'store-read-only', maybeAccepted: true }))
    expect(thrown).toThrow(/^the database is a standby: connect to the primary; the request may have been accepted/)
  })

  it('names the operation and what the server said when it cannot be reached', async () => {
    // Port 1 of this machine: nothing listens there.
    const pool = new pg.Pool({ connectionString: 'postgres://app@127.0.0.1:1/shop' })
    const latchkey = latchkeyOn(postgresStore({ pool }))
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    await expect(operation.run(runRequest('a'), () => 1)).rejects.toMatchObject({
      code: 'store-unavailable',
      message: expect.stringMatching(
        /^payments\.create: the store is unavailable; nothing was executed or stored \(.*ECONNREFUSED 127\.0\.0\.1:1\)$/,
      ),
    })
    await latchkey.close({ timeoutMs: 100 })
    await pool.end()
  })

  it('rejects with scope-unresolved for a scope that names nobody', async () => {
    const operation = latchkeyOn(memoryStore()).guarded('payments.create', { onFailure: 'hold' })
    const run = operation.run({ ...runRequest('a'), scope: '' }, () => 1)
    await expect(run).rejects.toMatchObject({
      code: 'scope-unresolved',
      message: expect.stringMatching(/singleTenant/),
    })
  })

  it('says that this instance is closed, and does not blame the store alone', async () => {
    const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant })
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    await latchkey.close()
    await expect(operation.run(runRequest('a'), () => 1)).rejects.toThrow(/Latchkey is closed/)
  })
})
