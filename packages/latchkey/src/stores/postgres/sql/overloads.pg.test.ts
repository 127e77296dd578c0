import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { plantOverloads } from '../../../../test/postgres/overloads.ts'
import type { AuditRecords } from '../../../ports/faculties/audit-records.ts'
import type { ClaimResult } from '../../../ports/store.ts'
import { postgresStore } from '../index.ts'
import { claimRequest } from '../../../../test/claim-request.ts'

const hourMs = 3_600_000
const answer = { status: 201, headers: [], body: Buffer.from('paid'), version: 1 }

describePostgres('another role that may create in the schema public', database => {
  it.each([
    ['makes no key run again, and nothing of its own run with the rights of the application', false],
    ['nor where lines are recorded', true],
  ])('%s', async (_, recordsLines) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 5 })
    pool.on('error', () => {})
    const overloads = await plantOverloads(database.url, pool)
    const plain = postgresStore({ pool })
    await plain.migrate()
    const store = recordsLines ? plain.auditRecords.recording() : plain
    expect(await store.check?.()).toEqual({ kind: 'fit' })
    if (recordsLines) await everythingOfTheTrail(plain.auditRecords)
    // Together, so that they go as batches; then one alone.
    for (const count of [5, 1]) {
      const asked = Array.from({ length: count }, request)
      const again = () => Promise.all(asked.map(each => store.claim({ ...each, claimId: randomUUID() })))
      const claims = (await Promise.all(asked.map(each => store.claim(each)))).map(owned)
      for (const result of await again()) expect(result).toMatchObject({ record: { state: 'in_progress' } })
      expect(await Promise.all(claims.map(claim => store.heartbeat(claim, hourMs)))).not.toContain('claim-lost')
      await Promise.all(claims.map(claim => store.complete(claim, answer, hourMs)))
      for (const result of await again()) expect(result).toMatchObject({ record: { state: 'completed' } })
    }
    const atomic = { ...request(), retentionMs: hourMs }
    for (const kind of ['free', 'seen']) {
      await store.transactor?.transaction(async tx => {
        const reserved = await store.transactor?.reserve(tx, atomic)
        expect(reserved?.kind).toBe(kind)
        if (reserved?.kind === 'free') await store.transactor?.recordLast?.(tx, atomic, answer, reserved.fence)
        return 'commit'
      }, atomic)
    }
    const tokens = { bucket: randomUUID(), perMinute: 10, tokens: 4 }
    for (const granted of [4, 4, 2]) expect(await store.quotas?.lease(tokens)).toMatchObject({ granted })
    await store.quotas?.giveBack(tokens)
    expect(await store.quotas?.prune({ limit: 10 })).toBe(0)
    expect(await store.quotas?.openKeys({ scope: 'tenant é', max: 10 })).toBe(0)
    expect(await store.quotas?.storedBytes({ scope: 'tenant é' })).toBeGreaterThan(0)
    expect([...overloads.called, ...overloads.unqualified]).toEqual([])
    await pool.end()
    await overloads.drop()
  })
})

async function everythingOfTheTrail(records: AuditRecords<unknown>): Promise<void> {
  const { identity, fingerprint } = request()
  await records.addMisuse({ identity, fingerprint })
  const { lines } = await records.page({ limit: 1, scope: identity.scope, id: identity.id, fromMs: 1, after: '1.1' })
  expect(lines).toHaveLength(1)
  expect(await records.expire({ olderThanMs: hourMs, limit: 1 })).toBe(0)
  const taken = await records.take({ limit: 1, leaseMs: hourMs })
  if (taken === undefined) throw new Error('there are no lines')
  expect(await records.handedOver(taken)).toBe('written')
  await records.giveBack(taken)
}

function owned(result: ClaimResult) {
  if (result.kind !== 'won') throw new Error(`expected the claim to be granted, and it was ${result.kind}`)
  return result.claim
}

const request = () => claimRequest({ identity: { id: randomUUID(), scope: 'tenant é', operation: 'payments.create' } })
