/** Nothing of a tenant is left where it was erased, and everything of the others is. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { setTimeout as pause } from 'node:timers/promises'
import { outcomeUnknown } from 'latchkey'
import type { RawDatabase } from './databases.ts'
import { deliverOne, finds, marker, openShop, type Shop } from './scene.ts'
import { present } from '../present.ts'

const act = { by: 'on-call', reason: `${marker} asked` }

export function eraseCases(openDatabase: () => Promise<RawDatabase>): void {
  let raw: RawDatabase
  const shops: Shop[] = []
  const open = (scope?: string) => {
    const shop = openShop(raw.store, undefined, scope)
    shops.push(shop)
    return shop
  }
  beforeEach(async () => {
    raw = await openDatabase()
  })
  afterEach(async () => {
    for (const shop of shops.splice(0)) await shop.latchkey.close()
    await raw.close()
  })

  endedCases(() => raw, open)
  openCases(() => raw, open)
}

type Open = (scope?: string) => Shop

function endedCases(raw: () => RawDatabase, open: Open): void {
  it('leaves nothing of the tenant: answers, inputs, steps, evidence, messages, audit', async () => {
    const shop = open()
    await shop.runAll()
    await shop.tell()
    await deliverOne(shop)
    const settled = await shop.latchkey.settle(shop.unknown, { kind: 'happened', status: 201, json: marker }, act)
    expect(settled.kind).toBe('settled')
    await shop.latchkey.forget({ ...shop.unknown, key: 'large' }, act)
    const exported = { ...shop.unknown, operation: 'exports.create', key: 'export' }
    const steps: number[] = []
    const first = await shop.latchkey.erase({
      scope: 'acme',
      batch: 1,
      onProgress: ({ rows }) => void steps.push(rows),
    })
    // The export waits for a worker; nobody has begun it.
    expect(first).toMatchObject({ rows: 4, messages: 1, openRows: 1, waitingMessages: 0 })
    expect(first.auditTexts).toBe(2)
    expect(steps.at(-1)).toBe(4)
    expect((await shop.latchkey.inspect(exported)).record).toMatchObject({ state: 'pending' })
    await endExport(shop)
    await raw().store.reap({ limit: 100 })
    expect((await shop.latchkey.inspect(exported)).record).toBeUndefined()
    // The second pass finds nothing more and ends the mark.
    await raw().store.reap({ limit: 100 })
    const received = await present(shop.store.reconciliation).forgetDeliveries({ olderThanMs: 0, limit: 10 })
    expect(received).toBe(1)
    const dump = await raw().dump()
    expect(finds(dump)).toBe(0)
    expect(dump).not.toContain('acme')
    expect(dump).toContain('on-call')
  })

  it('leaves other tenants alone, also one whose name begins alike', async () => {
    const others = ['acme2', 'Acme', 'acme/eu'].map(open)
    for (const other of others) await other.runAll()
    const shop = open()
    await shop.runAll()
    await shop.latchkey.erase({ scope: 'acme' })
    for (const other of others) expect(await other.runAll()).toBe(0)
    expect(await shop.runAll()).toBeGreaterThan(0)
  })
}

function openCases(raw: () => RawDatabase, open: Open): void {
  it('reports what is open and does not touch it', async () => {
    const shop = open()
    const pay = shop.latchkey.guarded('payments.create', { onFailure: 'hold' })
    const request = { scope: 'acme', key: 'running', input: { amount: 1 } }
    let proceed = () => {}
    const waiting = new Promise<void>(resolve => (proceed = resolve))
    let started = () => {}
    const begun = new Promise<void>(resolve => (started = resolve))
    const running = pay.run(request, async () => {
      started()
      await waiting
      return { to: marker }
    })
    await begun
    expect(await shop.latchkey.erase({ scope: 'acme' })).toMatchObject({ rows: 0, openRows: 1 })
    proceed()
    expect(await running).toEqual({ to: marker })
    expect(await pay.run(request, async () => 'again')).toEqual({ to: marker })
    await raw().store.reap({ limit: 100 })
    expect((await shop.latchkey.inspect({ ...shop.unknown, key: 'running' })).record).toBeUndefined()
  })

  it('keeps an unknown outcome until it is settled, and what began after the mark for good', async () => {
    const shop = open()
    const pay = shop.latchkey.guarded('payments.create', { onFailure: 'hold' })
    const lost = async () => {
      throw outcomeUnknown(new Error('no answer'))
    }
    await expect(pay.run({ scope: 'acme', key: 'lost', input: 1 }, lost)).rejects.toThrow()
    expect(await shop.latchkey.erase({ scope: 'acme' })).toMatchObject({ rows: 0, openRows: 1 })
    // The mark counts in milliseconds.
    await pause(5)
    await pay.run({ scope: 'acme', key: 'newer', input: 1 }, async () => 'new')
    await raw().store.reap({ limit: 100 })
    expect((await shop.latchkey.list({ scope: 'acme' })).records).toHaveLength(2)
    await shop.latchkey.settle({ ...shop.unknown, key: 'lost' }, { kind: 'never-happened' }, act)
    await raw().store.reap({ limit: 100 })
    await raw().store.reap({ limit: 100 })
    const { records } = await shop.latchkey.list({ scope: 'acme' })
    expect(records.map(({ id }) => id)).toEqual([shop.latchkey.identify({ ...shop.unknown, key: 'newer' })])
  })
}

async function endExport({ store, latchkey, unknown }: Shop): Promise<void> {
  const [found] = await store.resumable({ limit: 10 })
  if (found === undefined) throw new Error('there is no work')
  const { identity, fingerprint } = found
  const claimed = await store.claim({
    identity,
    fingerprint,
    claimId: crypto.randomUUID(),
    recovery: 'resume',
    leaseMs: 60_000,
    expiresInMs: 3_600_000,
    description: undefined,
  })
  if (claimed.kind !== 'won') throw new Error('the work is not free')
  expect(identity.id).toBe(latchkey.identify({ ...unknown, operation: 'exports.create', key: 'export' }))
  const outcome = { status: 200, headers: [], body: Buffer.from(marker), version: 1 }
  expect(await store.complete(claimed.claim, outcome, 3_600_000)).toBe('written')
}
