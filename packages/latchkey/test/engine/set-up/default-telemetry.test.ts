import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Context, Hono } from 'hono'
import Database from 'libsql'
import pg from 'pg'
import { createLatchkey } from '../../../src/engine/latchkey.ts'
import { singleTenant } from '../../../src/engine/request.ts'
import { idempotent } from '../../../src/http/hono/index.ts'
import { silentTelemetry } from '../../../src/ports/telemetry.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { sqliteStore } from '../../../src/stores/sqlite/index.ts'
import { runRequest } from '../fixture.ts'

let lines: string[] = []
let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-telemetry-'))
  lines = []
  vi.spyOn(console, 'warn').mockImplementation((line: string) => void lines.push(line))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(directory, { recursive: true, force: true })
})

const post = { method: 'POST', headers: { 'Idempotency-Key': 'secret-key-1' }, body: '{}' }
const openStore = () => sqliteStore({ path: join(directory, 'keys.db'), open: (path: string) => new Database(path) })

describe('a Latchkey without a telemetry', () => {
  it('writes that the scope of an operation cannot be resolved, and where to put that right', async () => {
    const scope = (c: Context) => c.get('account').id
    const latchkey = createLatchkey({ store: memoryStore(), scope })
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    const app = new Hono().post('/', idempotent(operation), c => c.text('paid'))
    for (let n = 0; n < 20; n++) expect((await app.request('/', post)).status).toBe(500)
    expect(lines).toEqual([
      '[latchkey] payments.create: the scope could not be resolved, so the request was refused: the scope function of ' +
        "createLatchkey must return the tenant of the authenticated caller: Cannot read properties of undefined (reading 'id')",
    ])
    await latchkey.close()
  })

  it('writes that migrate() was forgotten when a request needs the tables, once', async () => {
    const store = openStore()
    const latchkey = createLatchkey({ store, scope: singleTenant })
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    await expect(operation.run(runRequest('a'), () => 1)).rejects.toMatchObject({ code: 'store-not-migrated' })
    await expect(operation.run(runRequest('b'), () => 1)).rejects.toMatchObject({ code: 'store-not-migrated' })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^\[latchkey\] the sqlite store is not fit for requests: .*migrate\(\)/)
    await latchkey.close()
    await store.close()
  })

  it('writes nothing about tables that are made between the construction and the first request', async () => {
    const store = openStore()
    const latchkey = createLatchkey({ store, scope: singleTenant })
    await new Promise(setImmediate)
    await store.migrate()
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    expect(await operation.run(runRequest('a'), () => 1)).toBe(1)
    expect(lines).toEqual([])
    await latchkey.close()
    await store.close()
  })

  it('writes that the server of the connection string cannot be reached, and which operation was refused', async () => {
    // Port 1 of this machine: nothing listens there.
    const pool = new pg.Pool({ connectionString: 'postgres://app@127.0.0.1:1/shop' })
    const latchkey = createLatchkey({ store: postgresStore({ pool }), scope: singleTenant })
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    const app = new Hono().post('/', idempotent(operation), c => c.text('paid'))
    expect((await app.request('/', post)).status).toBe(503)
    expect(lines[0]).toMatch(
      /^\[latchkey\] the postgres store failed at claim: check its server and its connection settings: .*ECONNREFUSED/,
    )
    expect(lines[1]).toMatch(/^\[latchkey\] payments\.create: answered store-unavailable: .*ECONNREFUSED/)
    expect(lines).toHaveLength(2)
    expect(lines.join()).not.toContain('secret-key-1')
    await latchkey.close({ timeoutMs: 100 })
    await pool.end()
  })

  it('is silent with silentTelemetry', async () => {
    const unresolved = () => ''
    const latchkey = createLatchkey({ store: memoryStore(), scope: unresolved, telemetry: silentTelemetry })
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold' })
    const app = new Hono().post('/', idempotent(operation), c => c.text('paid'))
    expect((await app.request('/', post)).status).toBe(500)
    expect(lines).toEqual([])
    await latchkey.close()
  })
})
