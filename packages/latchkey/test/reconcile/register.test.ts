import { describe, expect, it } from 'vitest'
import { createLatchkey, json, singleTenant } from 'latchkey'
import { createReconciler, type GuardedRegistration, standardWebhooks } from 'latchkey/reconcile'
import { memoryStore } from 'latchkey/stores/memory'
import { createWorkers } from 'latchkey/workers'
import { secret } from './fixture.ts'

const lookup: GuardedRegistration['lookup'] = () => ({ kind: 'still-unknown' })

function newScene() {
  const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant })
  const pay = latchkey.guarded('payments.create', { onFailure: 'hold' })
  return { latchkey, pay, reconcile: createReconciler(latchkey) }
}

describe('register', () => {
  it.each([
    ['a quarantine of zero', { lookup, quarantineMs: 0 }, 'payments.create: quarantineMs must be a number above 0'],
    ['no time to answer', { lookup, timeoutMs: Number.NaN }, 'payments.create: timeoutMs must be a number above 0'],
    [
      'an hour to answer',
      { lookup, timeoutMs: 3_600_000 },
      'timeoutMs must be a number above 0 and at most 600000 ms, 10 minutes',
    ],
    ['no look-ups', { lookup, backoffMs: [] }, 'backoffMs must be a list of 1 to 1000 durations'],
    [
      'a wait that is none',
      { lookup, backoffMs: [1_000, -1] },
      'payments.create: backoffMs[1] must be a number above 0',
    ],
    ['nobody to ask', {} as GuardedRegistration, 'payments.create needs lookup: a function that asks its provider'],
    [
      'two questions for guarded work',
      { lookup, lookupOutcome: lookup } as GuardedRegistration,
      'lookupOutcome is for phased and deferred operations only',
    ],
  ])('refuses %s, and names the cure', (_, registration, message) => {
    const { reconcile, pay } = newScene()
    expect(() => reconcile.register(pay, registration)).toThrow(
      expect.objectContaining({ code: 'misconfigured', message: expect.stringContaining(message) }),
    )
  })

  it('refuses the operation of another Latchkey', () => {
    const other = createLatchkey({ store: memoryStore(), scope: singleTenant })
    const foreign = other.guarded('refunds.create', { onFailure: 'hold' })
    expect(() => newScene().reconcile.register(foreign, { lookup })).toThrow(
      'refunds.create is not declared on this Latchkey',
    )
  })

  it('refuses an operation twice', () => {
    const { reconcile, pay } = newScene()
    reconcile.register(pay, { lookup })
    expect(() => reconcile.register(pay, { lookup })).toThrow('payments.create is already registered')
  })

  it('is typed by the kind of the operation', () => {
    const { reconcile, pay } = newScene()
    // @ts-expect-error the verdict on guarded work is an outcome, not the value of an effect
    reconcile.register(pay, { lookup: () => ({ kind: 'happened', value: 1 }) })
    const typed = () => {
      const { latchkey } = newScene()
      const phased = latchkey.phased('exports.create', { version: 1 }, async (_, input: { rows: number }) =>
        json(200, input),
      )
      reconcile.register(phased, {
        lookup: ({ input, key }) => ({ kind: 'happened', value: [input.rows + 1, key.length] }),
        lookupOutcome: ({ input }) => ({ kind: 'declined', outcome: json(402, input.rows) }),
      })
      // @ts-expect-error the verdict on an effect is its value, not the outcome of the whole
      reconcile.register(phased, { lookup: () => ({ kind: 'happened', outcome: json(201, 1) }) })
      // @ts-expect-error an atomic operation is never unknown
      reconcile.register(latchkey.atomic('orders.create'), { lookup })
    }
    expect(typed).toBeTypeOf('function')
  })
})

describe('ledger and webhook', () => {
  const sides = { async *ours() {}, async *theirs() {}, same: () => true }

  it('refuse a name that is none, and one that is taken', async () => {
    const { reconcile } = newScene()
    expect(() => reconcile.ledger('a b', { everyMs: 1_000, ...sides })).toThrow('the name must be 1 to 64 letters')
    reconcile.ledger('books', { everyMs: 1_000, ...sides })
    expect(() => reconcile.ledger('books', { everyMs: 1_000, ...sides })).toThrow('"books" is already in use')
    await expect(reconcile.compare('boks')).rejects.toThrow('ledger "boks" is not declared')

    const options = { name: 'provider', verify: standardWebhooks({ secrets: [secret] }), evidence: () => undefined }
    expect(() => reconcile.webhook({ ...options, name: '' })).toThrow('name must be 1 to 64 letters')
    reconcile.webhook(options)
    expect(() => reconcile.webhook(options)).toThrow('"provider" is already in use')
  })

  it('refuse what cannot work', () => {
    const { reconcile } = newScene()
    expect(() => reconcile.ledger('a', { ...sides, everyMs: 0 })).toThrow(
      'ledger a: everyMs must be a number above 0 and at most 31622400000 ms, a year (got 0)',
    )
    expect(() => reconcile.ledger('a', { everyMs: 1, ...sides, same: undefined as never })).toThrow('needs same')
    expect(() => reconcile.webhook({ name: 'a', verify: undefined as never, evidence: () => undefined })).toThrow(
      'webhook a needs verify',
    )
  })
})

describe('the worker', () => {
  it('runs where a reconciler is given, and says what is missing where not', async () => {
    const { latchkey, reconcile } = newScene()
    const all = createWorkers(latchkey, { reconciler: { use: reconcile } })
    expect(Object.keys(all.health())).toEqual(['sweeper', 'resumer', 'reconciler', 'reaper'])
    expect(() => createWorkers(latchkey, { only: ['reconciler'] })).toThrow(
      'the reconciler has nothing to do without reconciler: { use: createReconciler(latchkey) }',
    )
    const withoutUse: object = { reconciler: {} }
    expect(() => createWorkers(latchkey, withoutUse)).toThrow('reconciler needs use: createReconciler(latchkey)')
    expect(() => createWorkers(latchkey, { reconciler: { use: reconcile, everyMs: 0 } })).toThrow(
      'reconciler.everyMs must be',
    )
    expect(() => createWorkers(latchkey, { reaper: { keepReceivedMs: 1 } })).toThrow(
      'reaper.keepReceivedMs must be at least 345600000, 4 days',
    )
  })
})
