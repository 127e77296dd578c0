/** Responses over `outcomeBytesMax`, and streams of events: sent while the handler writes them, and not stored. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Header, Latchkey, OwnerResult, Store } from 'latchkey'
import type { AdapterCase, AdapterHarness, HandlerReply } from '../adapter-harness.ts'
import {
  type AppFixture,
  assertProblem,
  type Counted,
  counted,
  created,
  eventually,
  gate,
  noise,
  route,
  txOf,
  withApp,
} from './fixture.ts'

const outcomeBytesMax = 1_024
const part = noise(4_096)

/** With a short lease, because that is how long a store that fails is tried again. */
function operation(latchkey: Latchkey<unknown, unknown>) {
  return latchkey.guarded('orders.create', { onFailure: 'rerun', outcomeBytesMax, leaseMs: 1_500 })
}

function source(chunks: AsyncIterable<Uint8Array>, headers: readonly Header[] = []): HandlerReply {
  return {
    kind: 'source',
    status: 201,
    headers: [['Content-Type', 'application/octet-stream'], ...headers],
    source: chunks,
  }
}

interface Play {
  readonly fixture: AppFixture
  readonly count: Counted
}

interface Stage {
  readonly reply: HandlerReply | ((run: number) => HandlerReply)
  readonly complete?: Complete
}

type Complete = (complete: () => Promise<OwnerResult>) => Promise<OwnerResult>

/** One guarded route. `complete` stands between the engine and its store. */
function onRoute(
  harness: AdapterHarness,
  { reply, complete = run => run() }: Stage,
  run: (play: Play) => Promise<void>,
): Promise<void> {
  const count = counted()
  const memory = harness.memoryStore()
  const store: Store = new Proxy(memory, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (name !== 'complete' || typeof value !== 'function') return value
      return (...args: unknown[]) => complete(() => Reflect.apply(value, target, args) as Promise<OwnerResult>) // the store's own
    },
  })
  return withApp(
    harness,
    latchkey => [route(operation(latchkey), (_, nth) => (typeof reply === 'function' ? reply(nth) : reply), { count })],
    fixture => run({ fixture, count }),
    { store },
  )
}

function stateOf({ store, id }: AppFixture): Promise<string | undefined> {
  return store.read(id('orders.create', 'k')).then(record => record?.state)
}

async function assertStoredWithoutBody({ fixture, count }: Play, status: number): Promise<void> {
  await eventually('the row is completed', async () => (await stateOf(fixture)) === 'completed')
  const again = await fixture.post('/orders', { key: 'k' })
  assertProblem(again, 410, 'response-not-stored')
  assert.deepEqual([again.json()['original_status'], count.runs], [status, 1])
}

async function* partsThen(parts: number, then: () => Promise<void>): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < parts; at++) yield part
  await then()
  yield part
}

async function fails(message: string): Promise<never> {
  await pause(50)
  throw new Error(message)
}

const limits: readonly AdapterCase[] = [
  {
    name: 'sends a response over outcomeBytesMax while its handler writes it, and tells the retry',
    needs: ['source'],
    async run(harness) {
      const door = gate()
      const headers = [
        ['Location', '/orders/9'],
        ['ETag', '"v9"'],
      ] as const
      await onRoute(harness, { reply: source(partsThen(3, door.pass), headers) }, async play => {
        let bytes = 0
        const first = play.fixture.open('/orders', { key: 'k', onData: ({ byteLength }) => (bytes += byteLength) })
        await eventually('what was written arrives while the handler runs', () => bytes === 3 * part.byteLength)
        assert.equal(await stateOf(play.fixture), 'in_progress')
        door.open()
        const received = await first.received
        assert.deepEqual([received.status, received.header('ETag')], [201, '"v9"'])
        assert.ok(received.body.equals(Buffer.concat([part, part, part, part])))
        await assertStoredWithoutBody(play, 201)
        const again = await play.fixture.post('/orders', { key: 'k' })
        assert.deepEqual([again.header('Location'), again.header('ETag')], ['/orders/9', '"v9"'])
      })
    },
  },
  ...[false, true].map((isDeclared): AdapterCase => ({
    name: isDeclared
      ? 'holds the bytes that reach a declared length back until the row is completed'
      : 'ends a response that streams only when its row is completed',
    needs: ['source'],
    async run(harness) {
      const door = gate()
      const stored = gate()
      const headers: Header[] = isDeclared ? [['Content-Length', String(3 * part.byteLength)]] : []
      const complete: Complete = async run => {
        await stored.pass()
        return run()
      }
      await onRoute(harness, { reply: source(partsThen(2, door.pass), headers), complete }, async play => {
        let bytes = 0
        let hasEnded = false
        const first = play.fixture.open('/orders', { key: 'k', onData: ({ byteLength }) => (bytes += byteLength) })
        const received = first.received.finally(() => (hasEnded = true))
        await eventually('the first parts arrive', () => bytes === 2 * part.byteLength)
        door.open()
        await stored.reached
        // Long enough for what was sent to arrive.
        await pause(100)
        assert.deepEqual([hasEnded, await stateOf(play.fixture)], [false, 'in_progress'])
        if (isDeclared) assert.ok(bytes < 3 * part.byteLength, `${bytes} bytes are a whole response`)
        stored.open()
        assert.equal((await received).body.byteLength, 3 * part.byteLength)
        await assertStoredWithoutBody(play, 201)
      })
    },
  })),
  {
    name: 'ends the connection instead of a response that streams when the claim was lost',
    needs: ['source'],
    async run(harness) {
      const complete: Complete = () => Promise.resolve('claim-lost')
      await onRoute(harness, { reply: source(partsThen(2, () => pause(50))), complete }, async ({ fixture }) => {
        await assert.rejects(fixture.post('/orders', { key: 'k' }), 'a part is not taken for the whole')
      })
    },
  },
  {
    name: 'ends the connection instead of a response that streams when the store does not take its end',
    needs: ['source'],
    async run(harness) {
      let isDown = true
      const complete: Complete = run => (isDown ? Promise.reject(new Error('ECONNREFUSED')) : run())
      await onRoute(harness, { reply: source(partsThen(2, () => pause(50))), complete }, async play => {
        await assert.rejects(play.fixture.post('/orders', { key: 'k' }), 'it cannot be marked as unstored any more')
        isDown = false
        await assertStoredWithoutBody(play, 201)
      })
    },
  },
  {
    name: 'ends the connection when a response breaks off after it was begun, stores nothing, and lets the retry run',
    needs: ['source'],
    async run(harness) {
      const broken = source(partsThen(2, () => fails('upstream went away')))
      await onRoute(harness, { reply: nth => (nth === 1 ? broken : created(nth)) }, async ({ fixture, count }) => {
        await assert.rejects(fixture.post('/orders', { key: 'k' }), 'a part is not taken for the whole')
        await eventually('the key is free', async () => (await stateOf(fixture)) === 'failed_retryable')
        const again = await fixture.post('/orders', { key: 'k' })
        assert.deepEqual([again.status, count.runs], [201, 2])
      })
    },
  },
]

/** Far more than the buffers of a connection hold, and than a process may spend on one client. */
const endlessBytes = 200_000_000
const boundBytes = 64_000_000

interface Flood {
  readonly chunks: AsyncIterable<Uint8Array>
  readonly bytes: () => number
}

function flood(): Flood {
  const block = Buffer.alloc(65_536, 'x')
  let bytes = 0
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (; bytes < endlessBytes; bytes += block.byteLength) yield block
  }
  return { chunks: chunks(), bytes: () => bytes }
}

/** Settles when the source has been left alone for a while. */
async function standstill({ bytes }: Flood): Promise<void> {
  let before = -1
  await eventually('the handler waits', async () => {
    const seen = before
    before = bytes()
    await pause(300)
    return before > outcomeBytesMax && before === bytes() && seen === before
  })
}

const readers: readonly AdapterCase[] = [
  {
    name: 'makes the handler wait for a client that reads nothing, and lets it finish when the client has left',
    needs: ['source'],
    async run(harness) {
      const endless = flood()
      await onRoute(harness, { reply: source(endless.chunks) }, async play => {
        const first = play.fixture.open('/orders', { key: 'k', reads: false })
        first.received.catch(() => {})
        await standstill(endless)
        assert.ok(endless.bytes() < boundBytes, `the handler was able to write ${endless.bytes()} bytes`)
        assert.equal(await stateOf(play.fixture), 'in_progress')
        first.drop()
        await assertStoredWithoutBody(play, 201)
        assert.ok(endless.bytes() >= endlessBytes, 'the handler wrote everything')
      })
    },
  },
  {
    name: 'lets a handler finish whose client left before its response was begun',
    needs: ['source'],
    async run(harness) {
      const door = gate()
      async function* late(): AsyncGenerator<Uint8Array> {
        await door.pass()
        for (let at = 0; at < 1_000; at++) yield part
      }
      await onRoute(harness, { reply: source(late()) }, async play => {
        const first = play.fixture.open('/orders', { key: 'k' })
        first.received.catch(() => {})
        await door.reached
        first.drop()
        // Long enough for the server to have seen the disconnect.
        await pause(150)
        door.open()
        await assertStoredWithoutBody(play, 201)
      })
    },
  },
  {
    name: 'passes a stream of events on from its first byte, and shows its handler that the client has left',
    needs: ['source'],
    async run(harness) {
      const events = eventSource()
      const reply: HandlerReply = {
        kind: 'source',
        status: 200,
        headers: [['Content-Type', 'text/event-stream']],
        source: events,
      }
      await onRoute(harness, { reply }, async play => {
        let text = ''
        const first = play.fixture.open('/orders', { key: 'k', onData: data => (text += data.toString()) })
        first.received.catch(() => {})
        await eventually('the first event arrives', () => text === 'data: 1\n\n')
        events.next()
        await eventually('the second event arrives', () => text === 'data: 1\n\ndata: 2\n\n')
        first.drop()
        await eventually('the handler sees that the client has left', events.isClosed)
        await assertStoredWithoutBody(play, 200)
      })
    },
  },
]

interface EventSource extends AsyncIterable<Uint8Array> {
  /** Emits another event. */
  next(): void
  isClosed(): boolean
}

/** Its first event comes at once, and none is its last. */
function eventSource(): EventSource {
  const waiting: (() => void)[] = []
  let sent = 0
  let allowed = 1
  let isClosed = false
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      while (sent >= allowed && !isClosed) await new Promise<void>(resolve => waiting.push(resolve))
      if (isClosed) return { done: true, value: undefined }
      sent += 1
      return { done: false, value: Buffer.from(`data: ${sent}\n\n`) }
    },
    async return() {
      isClosed = true
      wake()
      return { done: true, value: undefined }
    },
  }
  const wake = () => waiting.splice(0).forEach(resolve => resolve())
  return {
    [Symbol.asyncIterator]: () => iterator,
    next() {
      allowed += 1
      wake()
    },
    isClosed: () => isClosed,
  }
}

const atomic: readonly AdapterCase[] = [
  {
    name: 'commits the rows of an atomic operation before the end of a response that streams, and rolls them back when it breaks off',
    needs: ['source', 'transactional'],
    async run(harness) {
      const database = await harness.transactional?.()
      assert.ok(database !== undefined, 'the harness provides a transactional store')
      const door = gate()
      try {
        await withApp(
          harness,
          latchkey => [
            route(latchkey.atomic('orders.create', { outcomeBytesMax }), async ({ execution }, nth) => {
              await database.insert(txOf(execution), `order-${nth}`)
              return source(partsThen(2, nth === 1 ? () => fails('constraint') : door.pass))
            }),
          ],
          async ({ open, post }) => {
            await assert.rejects(post('/orders', { key: 'k' }), 'a part is not taken for the whole')
            let bytes = 0
            const again = open('/orders', { key: 'k', onData: ({ byteLength }) => (bytes += byteLength) })
            await eventually('the first parts arrive', () => bytes === 2 * part.byteLength)
            assert.deepEqual(await database.values(), [], 'nothing is committed while the handler runs')
            door.open()
            assert.equal((await again.received).body.byteLength, 3 * part.byteLength)
            assert.deepEqual(await database.values(), ['order-2'])
            assertProblem(await post('/orders', { key: 'k' }), 410, 'response-not-stored')
          },
          { store: database.store },
        )
      } finally {
        await database.close()
      }
    },
  },
]

export const streamCases: readonly AdapterCase[] = [...limits, ...readers, ...atomic]
