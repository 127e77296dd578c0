/** What is measured: a server without a guard, and the same server with one, each in its own process. */

/** `plain`: node:http and nothing else. `fetch`: a `Request` → `Response` handler on Hono's Node server. */
export type Frame = 'plain' | 'express' | 'hono' | 'fetch' | 'fastify' | 'koa'

/**
 * `none`: the handler alone. `own-transaction`: the handler's business transaction, without a key. `guarded` and `atomic`:
 * Latchkey. `naive`: the two statements that people write first. `floor`: the leanest durable guard. `peer`: another library.
 */
export type Guard = 'none' | 'own-transaction' | 'guarded' | 'atomic' | 'naive' | 'floor' | 'peer'

/** What is switched on beyond the defaults, where the cost of that is measured. */
export type Option = 'prometheus' | 'otel' | 'encryption' | 'limits'

export interface Subject {
  readonly id: string
  /** For the table. */
  readonly name: string
  readonly frame: Frame
  readonly guard: Guard
  readonly store: 'memory' | 'sqlite' | 'postgres' | 'redis' | 'tiered' | undefined
  readonly option?: Option
  /** A peer's file in bench/peers. */
  readonly peer?: string
  /** The subject it is compared with, in the same repetition. */
  readonly against: string
}

const plain = { frame: 'plain', against: 'bare' } as const
const onExpress = { frame: 'express', against: 'express' } as const

/**
 * The headline is measured on plain node:http: the cheapest server there is, so the one beside which a guard looks
 * dearest, and one that every peer can be mounted on. Latchkey is mounted there as Express mounts it, by (req, res, next).
 */
const onPlain: readonly Subject[] = [
  { id: 'bare', name: 'bare node:http', guard: 'none', store: undefined, ...plain },
  { id: 'postgres', name: 'Latchkey on PostgreSQL', guard: 'guarded', store: 'postgres', ...plain },
  { id: 'sqlite', name: 'Latchkey on SQLite', guard: 'guarded', store: 'sqlite', ...plain },
  { id: 'memory', name: 'Latchkey in memory', guard: 'guarded', store: 'memory', ...plain },
  { id: 'redis', name: 'Latchkey on Redis', guard: 'guarded', store: 'redis', ...plain },
  { id: 'tiered', name: 'Latchkey on PostgreSQL behind Redis', guard: 'guarded', store: 'tiered', ...plain },
  { id: 'naive', name: 'naive: pool of 10, INSERT and UPDATE', guard: 'naive', store: 'postgres', ...plain },
  { id: 'floor', name: 'floor: the leanest durable guard', guard: 'floor', store: 'postgres', ...plain },
  {
    id: 'own-postgres',
    name: 'own transaction on PostgreSQL',
    guard: 'own-transaction',
    store: 'postgres',
    frame: 'plain',
    against: 'own-postgres',
  },
  {
    id: 'atomic-postgres',
    name: 'Latchkey, atomic on PostgreSQL',
    guard: 'atomic',
    store: 'postgres',
    frame: 'plain',
    against: 'own-postgres',
  },
  {
    id: 'own-sqlite',
    name: 'own transaction on SQLite',
    guard: 'own-transaction',
    store: 'sqlite',
    frame: 'plain',
    against: 'own-sqlite',
  },
  {
    id: 'atomic-sqlite',
    name: 'Latchkey, atomic on SQLite',
    guard: 'atomic',
    store: 'sqlite',
    frame: 'plain',
    against: 'own-sqlite',
  },
]

const withOptions = [
  ['prometheus', 'prometheus', 'the same with prometheusTelemetry'],
  ['otel', 'otel', 'the same with otelTelemetry'],
  ['encrypted', 'encryption', 'the same with encryption'],
  ['limited', 'limits', 'the same with limits'],
] as const

/** Latchkey beside itself without the option. */
const options = withOptions.map(([suffix, option, name]): Subject => {
  return {
    id: `postgres-${suffix}`,
    name,
    guard: 'guarded',
    store: 'postgres',
    frame: 'plain',
    option,
    against: 'postgres',
  }
})

const peers: readonly Subject[] = [
  {
    id: 'powertools-redis',
    name: '@aws-lambda-powertools/idempotency on Redis',
    guard: 'peer',
    store: 'redis',
    peer: 'powertools.js',
    ...plain,
  },
  {
    id: 'powertools-validated',
    name: 'the same with payload validation',
    guard: 'peer',
    store: 'redis',
    peer: 'powertools-validated.js',
    ...plain,
  },
  {
    id: 'node-idempotency-redis',
    name: '@node-idempotency/core on Redis',
    guard: 'peer',
    store: 'redis',
    peer: 'node-idempotency.js',
    ...plain,
  },
  {
    id: 'steadykey-redis',
    name: 'steadykey on Redis',
    guard: 'peer',
    store: 'redis',
    peer: 'steadykey-redis.js',
    ...plain,
  },
  {
    id: 'steadykey-postgres',
    name: 'steadykey on PostgreSQL',
    guard: 'peer',
    store: 'postgres',
    peer: 'steadykey-postgres.js',
    ...plain,
  },
  {
    id: 'express-idempotency',
    name: 'express-idempotency, its memory store, on Express',
    guard: 'peer',
    store: 'memory',
    peer: 'express-idempotency.js',
    ...onExpress,
  },
]

const frames = [
  ['express', 'Express 5'],
  ['fastify', 'Fastify 5'],
  ['hono', 'Hono'],
  ['fetch', 'fetch handler'],
  ['koa', 'Koa 3'],
] as const

const adapters = frames.flatMap(([frame, name]): Subject[] => [
  { id: frame, name: `bare ${name}`, frame, guard: 'none', store: undefined, against: frame },
  {
    id: `${frame}-postgres`,
    name: `Latchkey on PostgreSQL, ${name}`,
    frame,
    guard: 'guarded',
    store: 'postgres',
    against: frame,
  },
])

const all: ReadonlyMap<string, Subject> = new Map(
  [...onPlain, ...options, ...peers, ...adapters].map(subject => [subject.id, subject]),
)

export const frameNames: readonly string[] = frames.map(([frame]) => frame)

export function subjectOf(id: string): Subject {
  const subject = all.get(id)
  if (subject === undefined) throw new Error(`there is no subject ${id}: ${[...all.keys()].join(', ')}`)
  return subject
}
