/** Known bugs at the borders: bodies, webhooks, replayed fields, options. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src'
const named = (path: string, test: string): NamedTest => ({ path: `packages/latchkey/${path}`, test })

export const httpMutants: readonly Mutant[] = [
  {
    name: 'http: a body without a length is read whole',
    patches: [
      {
        file: `${folder}/http/hono/request.ts`,
        find: 'if (declared === undefined && isEmpty(bodyCache)) return readUnsized(req, bytesMax)',
        replace: 'if (declared === -1) return readUnsized(req, bytesMax)',
      },
    ],
    caughtBy: [named('test/http/large-bodies.system.test.ts', 'is 413 and costs no memory on hono')],
  },
  {
    name: 'http: a body that a parser has read is not measured',
    patches: [
      {
        file: `${folder}/http/exchange/exchange.ts`,
        find: 'body.bytes.byteLength > bytesMax',
        replace: 'body.bytes.byteLength > bytesMax * 1e6',
      },
    ],
    caughtBy: [
      named(
        'src/http/express/conformance.test.ts',
        'runs a body of exactly bodyBytesMax, and refuses one byte more with 413',
      ),
    ],
  },
  {
    name: 'http: a replay without the type that the server adds',
    patches: [
      {
        file: `${folder}/http/web/capture.ts`,
        find: '  if (!headers.some(isType)) return undefined\n  const record',
        replace: '  const record',
      },
    ],
    caughtBy: [named('src/http/hono/index.test.ts', 'replays the fields of a 200 with bytes without a type')],
  },
  {
    name: 'webhook: the pseudo fields of HTTP/2 handed to fetch',
    patches: [
      {
        file: `${folder}/reconcile/webhooks/fetch-request.ts`,
        find: "    if (name.startsWith(':')) continue\n",
        replace: '',
      },
    ],
    caughtBy: [named('test/reconcile/node-webhook.test.ts', 'settles and refuses over HTTP/2 on node:http2')],
  },
  {
    name: 'webhook: no answer where the host fails',
    patches: [
      {
        file: `${folder}/reconcile/webhooks/node-webhook.ts`,
        find: '    return whole(host.fail(error))',
        replace: '    throw error',
      },
    ],
    caughtBy: [named('test/reconcile/node-webhook.test.ts', 'answers 500 and counts it where the host itself fails')],
  },
  {
    name: 'http: a key that cannot be read counts as none',
    patches: [
      {
        file: `${folder}/http/exchange/read-key.ts`,
        find: "return invalid('malformed', 'The server could not read the key in this request. It was not executed.')",
        replace: "return { kind: 'missing' }",
      },
    ],
    caughtBy: [
      named(
        'src/http/hono/index.test.ts',
        'refuses a key in the body that is absent, is no text or cannot be read, and reserves nothing',
      ),
    ],
  },
  {
    name: 'http: an answer of renderProblem that cannot be sent is sent',
    patches: [
      {
        file: `${folder}/http/exchange/answers/problem.ts`,
        find: '  for (const field of own) checkField(field)\n',
        replace: '',
      },
    ],
    caughtBy: [
      named(
        'src/http/exchange/answers/problem.test.ts',
        "sends Latchkey's own and reports it where it splits a header",
      ),
    ],
  },
  {
    name: 'http: client libraries retry an unknown outcome by themselves',
    patches: [
      {
        file: `${folder}/wire/render-problem.ts`,
        find: "return problem.attempt === 'own' ? undefined : false",
        replace: 'return undefined',
      },
    ],
    caughtBy: [
      named(
        'src/wire/render-problem.test.ts',
        'stops retries that wait for evidence or for a person, and those that never help',
      ),
    ],
  },
  {
    name: 'options: an unknown name is passed over',
    patches: [
      {
        file: `${folder}/ports/check-options.ts`,
        find: 'if (check === undefined) throw misconfigured(`${owner}: ${unknownName(name, checks, prefix)}`)',
        replace: 'if (check === undefined || unknownName(name, checks, prefix + owner) === undefined) continue',
      },
    ],
    caughtBy: [named('test/engine/set-up/options.test.ts', 'refuses {"retentionMS":1}')],
  },
]
