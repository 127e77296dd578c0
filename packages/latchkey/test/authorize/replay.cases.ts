/** Who gets a row that was granted to somebody else: only a caller whom the operation allows to see it. Run by a test file per store. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLatchkey, json, type KeyRecord, type Latchkey, type Store } from 'latchkey'
import type { Answer, ExecuteRequest } from '../../src/engine/answer.ts'
import { engine } from '../../src/engine/internal.ts'
import { answered, executeRequest, idOf, operationName, told } from '../engine/fixture.ts'

export interface Ground {
  readonly store: Store
  close(): Promise<void>
}

/** How a first owner left the row. */
type Left = 'failed_retryable' | 'dead lease' | 'pending'

interface Kind {
  readonly name: string
  readonly recovery: 'hold' | 'rerun' | 'resume'
  /** Asks as a client does. `ran` is called where the work would act. */
  readonly ask: (latchkey: Latchkey<unknown, unknown>, request: ExecuteRequest, ran: () => void) => Promise<Answer>
}

const hour = 3_600_000
const input = { amount: 1 }

const guardedKinds: readonly Kind[] = [
  ...(['hold', 'rerun'] as const).map((onFailure): Kind => ({
    name: `guarded, ${onFailure}`,
    recovery: onFailure,
    ask: (latchkey, request, ran) =>
      latchkey.guarded(operationName, { onFailure })[engine].execute(request, async () => {
        ran()
        return answered(201)
      }),
  })),
  {
    name: 'guarded, rerun, of a caller who would wait',
    recovery: 'rerun',
    ask: (latchkey, request, ran) =>
      latchkey
        .guarded(operationName, { onFailure: 'rerun', onInProgress: 'wait' })
        [engine].execute(request, async () => {
          ran()
          return answered(201)
        }),
  },
]

const transactionalKinds: readonly Kind[] = [
  {
    name: 'atomic',
    recovery: 'rerun',
    ask: (latchkey, request, ran) =>
      latchkey.atomic(operationName)[engine].execute(request, async () => {
        ran()
        return answered(201)
      }),
  },
  {
    name: 'phased',
    recovery: 'resume',
    ask: (latchkey, request, ran) =>
      latchkey
        .phased(operationName, { version: 1 }, async x => {
          await x.effect('charge', { timeoutMs: 1_000 }, async () => ran())
          return json(201, {})
        })
        [engine].execute(request, { input: () => input }),
  },
]

/** The rows in which a claim finds work that it would be granted. */
function leftBy({ recovery }: Kind): readonly Left[] {
  if (recovery === 'resume') return ['failed_retryable', 'dead lease', 'pending']
  return recovery === 'rerun' ? ['failed_retryable', 'dead lease'] : ['failed_retryable']
}

/** Everything but `true`. */
const refusals: readonly (readonly [string, () => unknown])[] = [
  ['false', () => false],
  ['nothing', () => undefined],
  ['something that is not true', () => 'yes'],
  ['a promise of nothing', () => Promise.resolve(undefined)],
  [
    'an error',
    () => {
      throw new Error('the directory is away')
    },
  ],
]

export function itAuthorisesBeforeARowChangesHands(open: () => Promise<Ground>): void {
  let ground: Ground
  let rows = 0
  beforeAll(async () => {
    ground = await open()
  })
  afterAll(() => ground.close())

  const cases = [...guardedKinds, ...transactionalKinds].flatMap(kind =>
    leftBy(kind).map(left => [`${kind.name}, over a row that is ${left}`, kind, left] as const),
  )
  describe.each(cases)('%s', (_, kind, left) => {
    const ask = async (key: string, said: () => unknown, ran: () => void) => {
      const asked: KeyRecord[] = []
      const latchkey = createLatchkey<unknown, unknown>({ store: ground.store, scope: () => 'acme' })
      // What JavaScript may return.
      const authorizeReplay = async (record: KeyRecord) => {
        asked.push(record)
        return said() as boolean
      }
      const answer = await kind.ask(latchkey, executeRequest(key, { authorizeReplay }), ran)
      await latchkey.close()
      return { answer: told(answer), asked }
    }

    it.each(refusals)('runs and tells nothing when authorizeReplay gives %s', async (_, said) => {
      const key = await leave(ground.store, { kind, left, key: `refused ${++rows}` })
      const before = await ground.store.read(idOf(key))
      let runs = 0
      const { answer, asked } = await ask(key, said, () => (runs += 1))
      expect([answer, runs, asked.length]).toEqual(['refused replay-not-authorized', 0, 1])
      expect(still(await ground.store.read(idOf(key)))).toEqual(still(before))
    })

    it('goes to a caller who is allowed, who was asked about this very grant', async () => {
      const key = await leave(ground.store, { kind, left, key: `allowed ${++rows}` })
      const before = await ground.store.read(idOf(key))
      let runs = 0
      const { answer, asked } = await ask(
        key,
        () => true,
        () => (runs += 1),
      )
      expect([answer, runs]).toEqual(['executed 201 yes', 1])
      expect(asked.map(({ fence, claimId }) => [fence, claimId])).toEqual([[before?.fence, before?.claimId]])
      expect((await ground.store.read(idOf(key)))?.fence).toBe(Number(before?.fence) + 1)
    })

    it('asks anew about a row that changed hands while its caller was asked about', async () => {
      const key = await leave(ground.store, { kind, left, key: `taken ${++rows}` })
      let runs = 0
      let questions = 0
      const said = async () => {
        questions += 1
        if (questions > 1) return false
        // Somebody else is granted the row, and leaves it as it was.
        await leave(ground.store, { kind, left: left === 'pending' ? 'failed_retryable' : left, key })
        return true
      }
      const { answer, asked } = await ask(key, said, () => (runs += 1))
      expect([answer, runs, asked.length]).toEqual(['refused replay-not-authorized', 0, 2])
      expect(asked[1]?.fence).toBe(Number(asked[0]?.fence) + 1)
    })
  })

  it('asks nobody about a new key, nor about one that has expired', async () => {
    const [kind] = guardedKinds
    if (kind === undefined) throw new Error('there is a guarded kind')
    const latchkey = createLatchkey<unknown, unknown>({ store: ground.store, scope: () => 'acme' })
    const request = executeRequest(`fresh ${++rows}`, { authorizeReplay: async () => false })
    expect(told(await kind.ask(latchkey, request, () => {}))).toBe('executed 201 yes')
    const old = await leave(ground.store, { kind, left: 'failed_retryable', key: `old ${++rows}`, expiresInMs: 1 })
    const expired = executeRequest(old, { authorizeReplay: async () => false })
    expect(told(await kind.ask(latchkey, expired, () => {}))).toBe('executed 201 yes')
    await latchkey.close()
  })

  it.each(refusals)('accepts no deferred work of others again when authorizeReplay gives %s', async (_, said) => {
    const latchkey = createLatchkey<unknown, unknown>({ store: ground.store, scope: () => 'acme' })
    const report = latchkey.deferred(operationName, { deadlineMs: hour }, async () => json(201, {}))
    const key = `deferred ${++rows}`
    expect(told(await report[engine].execute(executeRequest(key), { input: () => input }))).toBe('accepted')
    const before = await ground.store.read(idOf(key))
    // What JavaScript may return.
    const stranger = executeRequest(key, { authorizeReplay: async () => said() as boolean })
    expect(told(await report[engine].execute(stranger, { input: () => input }))).toBe('refused replay-not-authorized')
    expect(still(await ground.store.read(idOf(key)))).toEqual(still(before))
    await latchkey.close()
  })
}

interface Leaving {
  readonly kind: Kind
  readonly left: Left
  readonly key: string
  readonly expiresInMs?: number
}

/** As an owner that failed or died leaves its row; again over the row that is there. */
async function leave(store: Store, { kind, left, key, expiresInMs = hour }: Leaving): Promise<string> {
  const { identity, fingerprint } = executeRequest(key)
  const claimId = crypto.randomUUID()
  const base = { identity, claimId, fingerprint, expiresInMs, description: undefined }
  const work = { version: 1, input: JSON.stringify(input) }
  if (left === 'pending') {
    expect(await store.enqueue({ ...base, work: { ...work, deadlineInMs: hour } })).toMatchObject({ kind: 'queued' })
    return key
  }
  const { recovery } = kind
  const leaseMs = left === 'dead lease' ? 1 : hour
  const claimed = await store.claim({
    ...{ ...base, recovery, leaseMs },
    ...(recovery === 'resume' ? { work } : {}),
  })
  if (claimed.kind !== 'won') throw new Error(`the row is ${claimed.record.state}`)
  if (left === 'failed_retryable') {
    expect(await store.fail(claimed.claim, { to: 'failed_retryable', errorCode: 'x', dueInMs: 0 })).toBe('written')
  }
  // Leases and expiries of a millisecond, by the store's clock.
  await pause(20)
  return key
}

function still(record: KeyRecord | undefined): object {
  const {
    leaseLeftMs: _lease,
    dueInMs: _due,
    ageMs: _age,
    ...rest
  } = record ?? { leaseLeftMs: 0, dueInMs: 0, ageMs: 0 }
  return rest
}
