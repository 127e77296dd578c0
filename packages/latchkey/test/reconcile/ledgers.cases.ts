/** How an unknown payment ends by comparing the ledgers, on any store. */
import { expect, it } from 'vitest'
import { eventually } from '../engine/fixture.ts'
import { expectPaid } from './expect-paid.ts'
import { request, type ReconcileFixture } from './fixture.ts'
import { present } from '../present.ts'

const soon = { everyMs: 20 }

export function itSettlesByComparing(openOne: () => Promise<ReconcileFixture>): void {
  /** Both sides filtered by one label, so that tests on a shared database do not interfere. */
  function declare(
    fixture: ReconcileFixture,
    { label, everyMs = 3_600_000 }: { label: string; everyMs?: number },
  ): void {
    fixture.reconcile.ledger<{ label: string }, { label: string; key: string }>(`books-${label}`, {
      everyMs,
      async *ours() {
        yield { key: label, value: { label } }
      },
      async *theirs() {
        for (const charge of fixture.provider.charges) yield { key: charge.label, value: charge }
      },
      same: (ours, theirs) => ours.label === theirs.label,
      prove: ({ theirs }) => {
        if (theirs === undefined) {
          const id = fixture.latchkey.identify({ scope: 'acme', operation: fixture.pay.name, key: label })
          return { id, verdict: { kind: 'never-happened' } }
        }
        return { downstreamKey: theirs.key, verdict: { kind: 'happened', value: theirs } }
      },
    })
  }

  it('settles without a webhook and without a look-up, when it is due', async () => {
    const fixture = await openOne()
    declare(fixture, { label: 'compared' })
    const id = await fixture.unknownPayment('compared')
    await fixture.work({ reconciler: { use: fixture.reconcile, ...soon } })
    await eventually(async () => (await fixture.stateOf(id)) === 'completed')
    await expectPaid(fixture, 'compared')
    expect((await fixture.latchkey.inspect({ id })).evidence).toMatchObject([{ source: 'ledger', applied: true }])
    await eventually(async () => (await present(fixture.place.store.ledgers).last('books-compared')) !== undefined)
    expect(await present(fixture.place.store.ledgers).last('books-compared')).toMatchObject({
      compared: 1,
      settled: 1,
    })
    // Again, on demand: nothing is in doubt any more.
    expect(await fixture.reconcile.compare('books-compared')).toMatchObject({ compared: 1, missing: 0, settled: 0 })
  })

  it('believes that something is missing only where it became unknown a quarantine before', async () => {
    const fixture = await openOne()
    declare(fixture, { label: 'missing' })
    fixture.reconcile.register(fixture.pay, {
      quarantineMs: 700,
      backoffMs: [3_600_000],
      lookup: () => ({ kind: 'still-unknown' }),
    })
    const id = await fixture.unknownPayment('missing', 'lost-before')
    const early = await fixture.reconcile.compare('books-missing')
    expect(early).toMatchObject({ missing: 1, settled: 0, examples: [{ kind: 'missing', key: 'missing' }] })
    expect(await fixture.stateOf(id)).toBe('unknown')
    await eventually(async () => (await fixture.reconcile.compare('books-missing')).settled === 1)
    expect(await fixture.stateOf(id)).toBe('pending')
    expect(await fixture.pay.run(request('missing'))).toMatchObject({ status: 201 })
    expect(new Set(fixture.provider.calls).size).toBe(2)
  })

  it('settles nothing as missing when a side breaks its order, and names side and key', async () => {
    const fixture = await openOne()
    const id = await fixture.unknownPayment('unsorted')
    fixture.reconcile.register(fixture.pay, {
      quarantineMs: 1,
      backoffMs: [3_600_000],
      lookup: () => ({ kind: 'still-unknown' }),
    })
    const closed: string[] = []
    async function* side(name: string, keys: readonly string[]) {
      try {
        for (const key of keys) yield { key, value: key }
      } finally {
        closed.push(name)
      }
    }
    fixture.reconcile.ledger<string, string>('unsorted', {
      everyMs: 3_600_000,
      ours: () => side('ours', ['unsorted', 'z']),
      // It is there, but not where it belongs.
      theirs: () => side('theirs', ['y', 'unsorted', 'z']),
      same: () => true,
      prove: ({ key, theirs }) =>
        key === 'unsorted' && theirs === undefined ? { id, verdict: { kind: 'never-happened' } } : undefined,
    })
    await expect(fixture.reconcile.compare('unsorted')).rejects.toThrow('theirs gave the key "unsorted" after "y"')
    expect(await fixture.stateOf(id)).toBe('unknown')
    expect((await fixture.latchkey.inspect({ id })).evidence).toEqual([])
    expect(closed.sort()).toEqual(['ours', 'theirs'])
    expect(fixture.telemetry.counted('reconcile.failed')).toBe(1)
  })

  it('is run by one of several processes, and gives its place up when its worker is drained', async () => {
    const [one, other] = [await openOne(), await openOne()]
    let runs = 0
    let closed = 0
    const hanging = async function* (signal: AbortSignal): AsyncGenerator<{ key: string; value: string }> {
      runs += 1
      try {
        await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
        yield { key: 'a', value: 'a' }
      } finally {
        closed += 1
      }
    }
    for (const fixture of [one, other]) {
      fixture.reconcile.ledger('shared', {
        everyMs: 3_600_000,
        ours: hanging,
        async *theirs() {
          yield { key: 'b', value: 'b' }
        },
        same: () => true,
      })
    }
    const only = ['reconciler'] as const
    const first = await one.work({ reconciler: { use: one.reconcile, ...soon }, only })
    await eventually(() => runs === 1)
    await other.work({ reconciler: { use: other.reconcile, ...soon }, only })
    await expect(other.reconcile.compare('shared')).rejects.toMatchObject({ code: 'in-progress' })
    expect(runs).toBe(1)
    expect(await first.drain({ timeoutMs: 20_000 })).toEqual({ drained: true })
    await eventually(() => closed === 1)
    expect(one.telemetry.counted('reconcile.failed')).toBe(0)
  })
}
