/** Known bugs in responses that are sent while their handler writes them. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/http'
const named = (path: string, test: string): NamedTest => ({ path: `${folder}/${path}`, test })
const onNode = (test: string) => named('node/capture.test.ts', `capture on a Node response ${test}`)
const onFetch = (test: string) => named('fetch/index.test.ts', test)

const liveCase = 'sends a response over outcomeBytesMax while its handler writes it'
const endCase = 'ends a response that streams only when its row is completed'
const lengthCase = 'holds the bytes that reach a declared length back until the row is completed'
const lostCase = 'ends the connection instead of a response that streams when the claim was lost'
const storeCase = 'ends the connection instead of a response that streams when the store does not take its end'
const readerCase = 'makes the handler wait for a client that reads nothing, and lets it finish when the client has left'
const goneCase = 'lets a handler finish whose client left before its response was begun'
const eventCase = 'passes a stream of events on from its first byte'

const streamed = `${folder}/node/stream/streamed-response.ts`
const fetched = `${folder}/web/streamed-response.ts`

interface Bug {
  readonly file: string
  readonly find: string
  readonly replace: string
  readonly caughtBy: readonly NamedTest[]
}

const bugs: Readonly<Record<string, Bug>> = {
  'held whatever its size': {
    file: `${folder}/node/held-response.ts`,
    find: '!held.socket.isNested && hasOutgrown(held)',
    replace: 'held.socket.isNested && hasOutgrown(held)',
    caughtBy: [onNode(liveCase), onNode(readerCase), onNode(eventCase)],
  },
  'the end is sent before the row is completed': {
    file: streamed,
    find: '  if (res.finished) return true\n',
    replace: '',
    caughtBy: [onNode(endCase)],
  },
  'the bytes that reach a declared length are sent at once': {
    file: streamed,
    find: 'return !chunkedEncoding && declared !== null &&',
    replace: 'return !chunkedEncoding && declared === -1 &&',
    caughtBy: [onNode(lengthCase)],
  },
  'ended as if it were whole when the answer does not hold': {
    file: `${folder}/node/capture.ts`,
    find: 'if (held.hasBegun || held.streamed !== undefined) return cutOff(held)',
    replace: 'if (held.hasBegun || held.streamed !== undefined) return send(held)',
    caughtBy: [onNode(lostCase)],
  },
  'sent unmarked when the store has not taken it': {
    file: `${folder}/node/capture.ts`,
    find: "return isStreaming && stored === 'failed'",
    replace: "return isStreaming && stored === 'unprotected'",
    caughtBy: [onNode(storeCase)],
  },
  'no backpressure': {
    file: streamed,
    find: 'const isFull = !isInTurn || socket.isRealFull',
    replace: 'const isFull = !isInTurn',
    caughtBy: [onNode(readerCase)],
  },
  'a handler waits for a client that has left': {
    file: streamed,
    find: '      streamed.isClientGone = true\n      passOn(held, streamed, [])\n',
    replace: '      streamed.isClientGone = true\n',
    caughtBy: [onNode(readerCase)],
  },
  'the handler of a stream of events goes on for ever': {
    file: streamed,
    find: '      if (streamed.isEventStream) showDisconnect(held)\n',
    replace: '',
    caughtBy: [onNode(eventCase)],
  },
  'inner middleware bypasses the outer one': {
    file: `${folder}/node/hooks.ts`,
    find: 'Reflect.set(res, name, coverOf(name))',
    replace: 'Reflect.set(res, name, coverOf(name) && plain(name))',
    caughtBy: [named('node/stream/streamed-response.test.ts', 'gets what inner middleware passes on')],
  },
  'no backpressure on HTTP/2': {
    file: `${folder}/node/stream/detached-stream.ts`,
    find: 'if (passed.length === 0 || isClientGone) return void setImmediate(taken)',
    replace: 'setImmediate(taken)',
    caughtBy: [named('node/stream/detached-stream.test.ts', 'makes its handler wait for the client')],
  },
  'read ahead of the client on fetch': {
    file: fetched,
    find: '{ highWaterMark: 0 }',
    replace: '{ highWaterMark: 1e9 }',
    caughtBy: [onFetch(readerCase)],
  },
  'ended before the row is completed on fetch': {
    file: fetched,
    find: '    if (!holds(await concluded.promise)) throw replaced()\n',
    replace: '',
    caughtBy: [onFetch(endCase), onFetch(lengthCase), onFetch(lostCase)],
  },
  'a server that does not cancel is waited for on fetch': {
    file: fetched,
    find: '  if (signal?.aborted === true) leave()\n',
    replace: '  if (signal?.aborted === undefined) leave()\n',
    caughtBy: [onFetch(goneCase)],
  },
  'the source ends with its client on fetch': {
    file: fetched,
    find: 'if (!isEventStream) return void readToEnd().catch(() => {})',
    replace: 'if (!isEventStream) return void reader.cancel()',
    caughtBy: [onFetch(readerCase)],
  },
}

export const streamMutants: readonly Mutant[] = Object.entries(bugs).map(([name, { caughtBy, ...patch }]) => ({
  name: `stream: ${name}`,
  patches: [patch],
  caughtBy,
}))
