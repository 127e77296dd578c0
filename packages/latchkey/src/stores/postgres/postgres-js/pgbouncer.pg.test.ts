import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import postgres from 'postgres'
import { describePgBouncer } from '../../../../../../test/servers/pgbouncer.ts'
import { itEndsAtomically } from '../../../../test/atomic/endings.cases.ts'
import { postgresJsShop } from '../../../../test/atomic/postgres-js-shop.ts'
import { postgresStore } from '../index.ts'

describePgBouncer('the postgres store on postgres.js behind PgBouncer in transaction mode', database => {
  let sql: postgres.Sql
  beforeAll(() => {
    sql = postgres(database.url, { prepare: false })
  })
  afterAll(() => sql.end({ timeout: 5 }))

  it('grants and completes two hundred claims at once', async () => {
    const store = postgresStore({ sql })
    await store.migrate()
    const ends = Array.from({ length: 200 }, async () => {
      const claim = { id: randomUUID(), claimId: randomUUID() }
      const granted = await store.claim({
        identity: { id: claim.id, scope: 's', operation: 'o' },
        ...{ claimId: claim.claimId, fingerprint: Buffer.from('f'), recovery: 'hold', description: undefined },
        ...{ leaseMs: 30_000, expiresInMs: 3_600_000 },
      })
      if (granted.kind !== 'won') return granted.kind
      const outcome = { status: 201, headers: [], body: Buffer.from(claim.id), version: 1 }
      return store.complete(granted.claim, outcome, 3_600_000)
    })
    expect(new Set(await Promise.all(ends))).toEqual(new Set(['written']))
  })

  describe('ends atomic operations:', () => itEndsAtomically(() => postgresJsShop(database.url, { prepare: false })))
})
