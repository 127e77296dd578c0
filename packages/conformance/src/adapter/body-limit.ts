/** A body over `bodyBytesMax` is refused before anything is reserved, however it is sent, and costs no more than the limit. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import type { Latchkey } from 'latchkey'
import type { AdapterCase, AdapterHarness } from '../adapter-harness.ts'
import {
  assertProblem,
  assertReplay,
  type Counted,
  counted,
  created,
  withApp,
  route,
  type AppFixture,
} from './fixture.ts'

const bodyBytesMax = 1_000

/** JSON of exactly this many bytes, the same whether a parser retained its bytes or its value. */
function sized(bytes: number): { readonly text: string } {
  return { text: 'x'.repeat(bytes - '{"text":""}'.length) }
}

interface Play {
  readonly fixture: AppFixture
  readonly count: Counted
}

function onRoute(harness: AdapterHarness, run: (given: Play) => Promise<void>): Promise<void> {
  const count = counted()
  const operation = (latchkey: Latchkey<unknown, unknown>) =>
    latchkey.guarded('orders.create', { onFailure: 'rerun', bodyBytesMax })
  return withApp(
    harness,
    latchkey => [route(operation(latchkey), created(1), { count })],
    fixture => run({ fixture, count }),
  )
}

async function assertNothingRan({ fixture, count }: Play, runs: number, key: string): Promise<void> {
  assert.equal(count.runs, runs)
  assert.equal(await fixture.store.read(fixture.id('orders.create', key)), undefined, 'nothing is reserved')
}

const refusals = [true, false].map((chunked): AdapterCase => ({
  name: chunked
    ? 'refuses a chunked body of one byte too many with 413, and reserves nothing'
    : 'runs a body of exactly bodyBytesMax, and refuses one byte more with 413',
  run: harness =>
    onRoute(harness, async run => {
      const { post } = run.fixture
      const first = await post('/orders', { key: 'fits', body: sized(bodyBytesMax), chunked })
      assert.equal(first.status, 201, first.body.toString())
      assertReplay(first, await post('/orders', { key: 'fits', body: sized(bodyBytesMax), chunked }))
      const refused = await post('/orders', { key: 'large', body: sized(bodyBytesMax + 1), chunked })
      assertProblem(refused, 413, 'body-too-large')
      assert.equal(refused.json()['bytes_max'], bodyBytesMax)
      await assertNothingRan(run, 1, 'large')
    }),
}))

export const bodyLimitCases: readonly AdapterCase[] = [
  ...refusals,
  {
    name: 'serves the next request after a body that was too large',
    run: harness =>
      onRoute(harness, async run => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 })
        try {
          for (const chunked of [false, true]) {
            const refused = await run.fixture.post('/orders', { key: 'large', body: sized(50_000), chunked, agent })
            assertProblem(refused, 413, 'body-too-large')
            await assertNothingRan(run, chunked ? 1 : 0, 'large')
            const next = await run.fixture.post('/orders', { key: `next-${chunked}`, body: sized(50), agent })
            assert.equal(next.status, 201)
          }
        } finally {
          agent.destroy()
        }
      }),
  },
  {
    name: 'leaves the body alone of a request that is not covered, and of one that runs unprotected',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.put', { onFailure: 'rerun', bodyBytesMax, methods: ['PUT'] }), created(1), {
            count,
          }),
          route(
            latchkey.guarded('orders.free', { onFailure: 'rerun', bodyBytesMax, onMissingKey: 'run-unprotected' }),
            created(2),
            { count, path: '/free' },
          ),
        ],
        async ({ post }) => {
          assert.equal((await post('/orders', { key: 'k', body: sized(5_000) })).status, 201)
          assert.equal((await post('/free', { body: sized(5_000) })).status, 201)
          assert.deepEqual(
            count.inputs.map(({ body }) => body),
            [sized(5_000), sized(5_000)],
          )
        },
      )
    },
  },
]
