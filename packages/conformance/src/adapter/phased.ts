/** Work whose definition is declared with it: the adapter builds the input and sends the outcome. */
import assert from 'node:assert/strict'
import { type Definition, type HttpOptions, json, type Store } from 'latchkey'
import type { AdapterCase, AdapterHarness, AdapterNeed, TransactionalHarness } from '../adapter-harness.ts'
import {
  assertProblem,
  assertReplay,
  type Counted,
  counted,
  eventually,
  gate,
  withApp,
  type AppFixture,
} from './fixture.ts'

interface Phased {
  readonly fixture: AppFixture
  readonly database: TransactionalHarness
  /** Counts the runs of the definition. */
  readonly count: Counted
}

interface PhasedSpec {
  /** Runs after the row is recorded; its result is the response's `note`. */
  readonly finish?: (run: number) => unknown
  readonly buildInput?: (body: unknown) => unknown
  readonly authorizeReplay?: (context: unknown) => boolean
  readonly http?: HttpOptions
  /** Used by the routes instead of the store. */
  readonly over?: (store: Store) => Store
  readonly run: (phased: Phased) => Promise<void>
}

const needs: readonly AdapterNeed[] = ['transactional', 'phased']
const path = '/payments'
const operation = 'payments.create'

/** One phased route that records its input as a row, and then answers. */
async function onPhasedStage(harness: AdapterHarness, spec: PhasedSpec): Promise<void> {
  const database = await harness.transactional?.()
  assert.ok(database !== undefined, 'the harness provides a transactional store')
  const count = counted()
  const { buildInput = body => body, finish = () => 'done', over = store => store } = spec
  const { authorizeReplay, http = {}, run } = spec
  const options = { version: 1, ...(authorizeReplay === undefined ? {} : { authorizeReplay }) }
  const definition: Definition<unknown, unknown> = async (execution, input) => {
    const run = ++count.runs
    await execution.phase('record', tx => database.insert(tx, `${JSON.stringify(input)} in run ${run}`))
    const note = await finish(run)
    return json(201, { input, note }, [['Location', '/payments/1']])
  }
  try {
    await withApp(
      harness,
      () => [],
      fixture => run({ fixture, database, count }),
      {
        store: over(database.store),
        outerHeaders: [['X-Outer', 'always']],
        http,
        phased: latchkey => [
          {
            method: 'POST',
            path,
            operation: latchkey.phased(operation, options, definition),
            input: buildInput,
          },
        ],
      },
    )
  } finally {
    await database.close()
  }
}

/** As bytes, so that the case itself does not nest as deeply. */
export const tooLarge: readonly [string, Buffer, object][] = [
  ['has more than 64 KiB', Buffer.from(JSON.stringify({ text: 'x'.repeat(65_536) })), { bytes_max: 65_536 }],
  ['is nested too deep', Buffer.from(`{"a":${'['.repeat(9_000)}${']'.repeat(9_000)}}`), { levels_max: 256 }],
]

export const phasedCases: readonly AdapterCase[] = [
  {
    name: 'says that phased work may have been accepted, not that it was not executed, when the reply to its claim is lost',
    needs,
    run(harness) {
      const lost = async (): Promise<never> => Promise.reject(new Error('connection terminated'))
      return onPhasedStage(harness, {
        over: store => ({
          ...store,
          claim: request => store.claim(request).then(lost),
          read: lost,
        }),
        async run({ fixture, database, count }) {
          const refused = await fixture.post(path, { key: 'k', body: { cents: 5 } })
          assertProblem(refused, 503, 'store-unavailable')
          assert.match(refused.body.toString(), /may have been accepted.*"maybe_accepted":true/)
          assert.doesNotMatch(refused.body.toString(), /not executed/)
          assert.equal(count.runs, 0)
          const claimed = await database.store.read(fixture.id(operation, 'k'))
          assert.equal(claimed?.state, 'in_progress', 'it is in the store, and a worker is executing it')
        },
      })
    },
  },
  {
    name: 'runs a phased operation once and replays its outcome byte for byte, under the headers of outer middleware',
    needs,
    run: harness =>
      onPhasedStage(harness, {
        async run({ fixture, database, count }) {
          let seen: Promise<{ readonly state: string } | undefined> | undefined
          const onFirstByte = () => void (seen = fixture.store.read(fixture.id(operation, 'k')))
          const first = await fixture.post(path, { key: 'k', body: { cents: 5 }, onFirstByte })
          assert.equal(first.status, 201, first.body.toString())
          assert.equal((await seen)?.state, 'completed', 'stored before the first byte is sent')
          const again = await fixture.post(path, { key: 'k', body: { cents: 5 } })
          assertReplay(first, again)
          for (const one of [first, again]) {
            assert.deepEqual(
              ['Content-Type', 'Location', 'X-Outer'].map(name => one.header(name)),
              ['application/json', '/payments/1', 'always'],
            )
          }
          assert.deepEqual([count.runs, await database.values()], [1, ['{"cents":5} in run 1']])
        },
      }),
  },
  {
    name: 'tells the same expiry of a phased answer first and again',
    needs,
    run: harness =>
      onPhasedStage(harness, {
        http: { expiresHeader: true },
        async run({ fixture: { post } }) {
          const ask = async () => (await post(path, { key: 'k', body: {} })).header('Idempotency-Key-Expires-At')
          const first = await ask()
          assert.ok(first !== undefined, 'the first response says when the key expires')
          assert.equal(await ask(), first)
        },
      }),
  },
  {
    name: 'hands a phased definition the input that was built from its request',
    needs,
    run: harness =>
      onPhasedStage(harness, {
        buildInput: async body => ({ paid: body, by: 'input' }),
        async run({ fixture }) {
          for (const cents of [5, 7]) {
            const received = await fixture.post(path, { key: `k${cents}`, body: { cents } })
            assert.equal(received.body.toString(), `{"input":{"paid":{"cents":${cents}},"by":"input"},"note":"done"}`)
          }
        },
      }),
  },
  {
    name: "gives what a phased definition throws to the framework's error handling, and the retry goes on behind its steps",
    needs,
    run: harness =>
      onPhasedStage(harness, {
        finish: run => (run === 1 ? Promise.reject(new TypeError('the first run fails')) : 'second'),
        async run({ fixture, database, count }) {
          const first = await fixture.post(path, { key: 'k', body: { cents: 5 } })
          assert.equal(first.status, 500)
          assert.equal(first.header('Latchkey-Retry'), undefined, "the answer is the framework's own")
          let retry = first
          await eventually('the retry runs', async () => {
            retry = await fixture.post(path, { key: 'k', body: { cents: 5 } })
            // Until the row is due again.
            return retry.status !== 409
          })
          assert.deepEqual([retry.status, retry.header('Idempotent-Replayed'), count.runs], [201, undefined, 2])
          assertReplay(retry, await fixture.post(path, { key: 'k', body: { cents: 5 } }))
          assert.deepEqual(await database.values(), ['{"cents":5} in run 1'], 'a finished step does not run again')
        },
      }),
  },
  {
    name: 'resumes phased work of another caller only for one who may see it',
    needs,
    run: harness =>
      onPhasedStage(harness, {
        authorizeReplay: context => harness.headerOf(context, 'x-principal') === 'ann',
        finish(run) {
          if (run === 1) throw new Error('out of paper')
          return 'printed'
        },
        async run({ fixture: { post }, database, count }) {
          const as = (principal: string) =>
            post(path, { key: 'k', body: { sku: 7 }, headers: { 'x-principal': principal } })
          assert.equal((await as('ann')).status, 500)
          const bob = async () => assertProblem(await as('bob'), 403, 'replay-not-authorized')
          await bob()
          await eventually('the work is resumed for its owner', async () => {
            await bob()
            return (await as('ann')).status === 201
          })
          await bob()
          assert.deepEqual([count.runs, (await database.values()).length], [2, 1])
        },
      }),
  },
  {
    name: "gives what a phased route's input throws to the framework's error handling, and reserves nothing",
    needs,
    run(harness) {
      let fails = true
      return onPhasedStage(harness, {
        buildInput(body) {
          if (fails) throw new TypeError('no such account')
          return body
        },
        async run({ fixture, count }) {
          assert.equal((await fixture.post(path, { key: 'k', body: { cents: 5 } })).status, 500)
          assert.deepEqual([await fixture.store.read(fixture.id(operation, 'k')), count.runs], [undefined, 0])
          fails = false
          assert.equal((await fixture.post(path, { key: 'k', body: { cents: 5 } })).status, 201)
        },
      })
    },
  },
  ...tooLarge.map(([what, body, limit]): AdapterCase => ({
    name: `refuses a phased request whose input ${what} with 413 and the limit, and reserves nothing`,
    needs,
    run: harness =>
      onPhasedStage(harness, {
        async run({ fixture, count }) {
          const refused = await fixture.post(path, { key: 'k', body, headers: { 'Content-Type': 'application/json' } })
          assertProblem(refused, 413, 'body-too-large')
          assert.deepEqual({ ...refused.json(), ...limit }, refused.json())
          assert.deepEqual([await fixture.store.read(fixture.id(operation, 'k')), count.runs], [undefined, 0])
        },
      }),
  })),
  {
    name: 'refuses a phased request without a key, and a key that comes with another body',
    needs,
    run: harness =>
      onPhasedStage(harness, {
        async run({ fixture, count }) {
          const missing = await fixture.post(path, { body: { cents: 5 } })
          assertProblem(missing, 400, 'missing-key')
          assert.equal(missing.header('X-Outer'), 'always')
          const first = await fixture.post(path, { key: 'k', body: { cents: 5 } })
          assertProblem(await fixture.post(path, { key: 'k', body: { cents: 6 } }), 422, 'key-reused')
          assertReplay(first, await fixture.post(path, { key: 'k', body: { cents: 5 } }))
          assert.equal(count.runs, 1)
        },
      }),
  },
  {
    name: 'answers 409 to a concurrent duplicate of phased work, which ends although its client has left',
    needs,
    run(harness) {
      const door = gate()
      return onPhasedStage(harness, {
        finish: () => door.pass(),
        async run({ fixture, database, count }) {
          const impatient = fixture.open(path, { key: 'k', body: { cents: 5 } })
          impatient.received.catch(() => {})
          await door.reached
          const duplicate = await fixture.post(path, { key: 'k', body: { cents: 5 } })
          assertProblem(duplicate, 409, 'in-progress')
          assert.ok(Number(duplicate.header('Retry-After')) >= 1)
          impatient.drop()
          door.open()
          let retry = duplicate
          await eventually('the retry is answered', async () => {
            retry = await fixture.post(path, { key: 'k', body: { cents: 5 } })
            return retry.status !== 409
          })
          assert.deepEqual([retry.status, retry.header('Idempotent-Replayed'), count.runs], [201, 'true', 1])
          assert.equal((await database.values()).length, 1)
        },
      })
    },
  },
]
