/** The nemesis: several loops at once, each of which draws from the seed what to break next and for how long. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Provider } from '../../../examples/payments/src/provider-process.ts'
import type { Fault } from '../../../examples/payments/src/charge.ts'
import type { Fleet } from '../fleet.ts'
import { cacheFaults, type RedisCache } from '../../../test/servers/redis/redis-cache.ts'
import type { KeyServer } from '../keys/key-server.ts'
import type { History, NemesisEvent } from '../history.ts'
import { type Random, randomFrom } from '../random.ts'
import type { StoreKind } from '../store-kind.ts'
import type { Proxy } from './proxy.ts'

export interface Targets {
  readonly seconds: number
  readonly seed: number
  readonly leaseMs: number
  readonly fleet: Fleet
  readonly proxies: readonly Proxy[]
  readonly store: StoreKind
  readonly keys: KeyServer
  /** In front of the keys. */
  readonly cache: RedisCache | undefined
  readonly provider: Provider
  readonly log: History<NemesisEvent>
  readonly poison: () => void
  /** A person settles one unknown row, if there is one to settle. */
  readonly settleOne: () => Promise<boolean>
}

/** With fewer awake, none is paused: another process must be able to take over. */
const awakeMin = 3
/** With fewer alive, none is killed: on a slow machine no process would be left. */
const aliveMin = 2

/** Before a last write, and after it: then nothing may be refused. */
const lateCommits = ['^finish:before', '^phase:before-commit', '^result:before', '^finish:']
const lateWrites: Readonly<Record<StoreKind, readonly string[]>> = {
  postgres: lateCommits,
  tiered: lateCommits,
  redis: ['^finish:before', '^finish:before', '^result:before'],
}

type Range = readonly [fromMs: number, toMs: number]

/** Between two processes that are killed or paused. On Redis fewer die, so that more of them live to write too late. */
const killPauseMs: Readonly<Record<StoreKind, Range>> = {
  postgres: [1_000, 2_800],
  tiered: [1_000, 2_800],
  redis: [2_500, 6_000],
}
/** Between two that stop themselves. On Redis a stale write is all that the fence is there for: no transaction refuses it. */
const sleepPauseMs: Readonly<Record<StoreKind, Range>> = {
  postgres: [2_000, 6_000],
  tiered: [2_000, 6_000],
  redis: [500, 2_000],
}

/** Some work ends within this time, or the process is dead. */
const swallowLimitMs = 3_000
const strikeLimitMs = 3_000

/** Returns when the time is over and everything is repaired. */
export async function runNemesis(targets: Targets): Promise<void> {
  const endMs = performance.now() + targets.seconds * 1_000
  const hand = async (label: string, act: (random: Random) => Promise<void>) => {
    const random = randomFrom(targets.seed, label)
    while (performance.now() < endMs) await act(random)
  }
  const deck: Fault[] = []
  await Promise.all([
    hand('processes', random => harmProcess(targets, random)),
    hand('sleepers', random => fallAsleep(targets, random)),
    hand('proxies', random => harmProxy(targets, random)),
    hand('provider', random => harmProvider(targets, random, deck)),
    hand('books', random => closeBooks(targets, random)),
    hand('operator', random => settleByHand(targets, random)),
    targets.cache && hand('cache', random => harmCache(targets, random)),
    killServer(targets, endMs),
    poison(targets, endMs),
  ])
  for (const proxy of targets.proxies) proxy.heal()
  await targets.provider.setFault(null)
  await targets.provider.setBooks(true)
}

async function harmProcess({ fleet, leaseMs, store, log }: Targets, random: Random): Promise<void> {
  // A starting process has nothing to lose, and a paused one must resume too late.
  const up = fleet.awake()
  if (up.length < aliveMin) return delay(100)
  const app = random.pick(up)
  if (up.length < awakeMin || random.chance(0.75)) {
    // The fleet logs the kill when it sees the process exit.
    fleet.kill(app)
  } else {
    const ms = leaseMs + random.between(500, 2_500)
    log.write({ type: 'fault', kind: 'app-stopped', app, detail: `${ms} ms` })
    // Not awaited: others are killed while this one is paused.
    void fleet.pause(app, ms)
  }
  await delay(random.between(...killPauseMs[store]))
}

/** Stops a process right before it writes its result: when it resumes, another process owns the row. */
async function fallAsleep({ fleet, store }: Targets, random: Random): Promise<void> {
  await delay(random.between(...sleepPauseMs[store]))
  const endMs = performance.now() + strikeLimitMs
  while (fleet.awake().length < aliveMin && performance.now() < endMs) await delay(100)
  const up = fleet.awake()
  if (up.length >= aliveMin) fleet.stopAt(random.pick(up), random.pick(lateWrites[store]))
}

async function harmProxy({ proxies, keys, log }: Targets, random: Random): Promise<void> {
  const app = random.between(0, proxies.length - 1)
  const proxy = proxies[app]
  const report = (kind: string, detail = '') => log.write({ type: 'fault', kind, app, detail })
  const ms = random.between(300, 4_000)
  switch (random.pick(['last', 'last', 'last', 'cut', 'dark', 'replies', 'slow'] as const)) {
    case 'last': {
      const then = random.pick(['cut', 'silence'] as const)
      const swallowed = new Promise<void>(done => proxy?.swallowReply(then, done))
      const reported = swallowed.then(() => report(`${keys.lastWord.name}-reply-swallowed`, then))
      await Promise.race([reported, delay(swallowLimitMs)])
      break
    }
    case 'cut':
      report('proxy-cut', `${proxy?.cut()} connections`)
      return delay(random.between(200, 1_500))
    case 'dark':
      report('proxy-dark', `${ms} ms`)
      proxy?.goDark('both')
      break
    case 'replies':
      report('proxy-replies-lost', `${ms} ms`)
      proxy?.goDark('replies')
      break
    case 'slow':
      report('proxy-slow', `${ms} ms`)
      proxy?.slowDown(random.between(20, 200))
      break
  }
  await delay(ms)
  proxy?.heal()
  await delay(random.between(100, 1_000))
}

async function harmCache({ cache, log }: Targets, random: Random): Promise<void> {
  await delay(random.between(500, 3_000))
  const fault = random.pick(cacheFaults)
  const ms = random.between(200, 3_000)
  log.write({ type: 'fault', kind: `cache-${fault}`, detail: fault === 'flushed' ? '' : `${ms} ms` })
  await cache?.harm(fault, ms)
}

async function harmProvider({ provider, log }: Targets, random: Random, deck: Fault[]): Promise<void> {
  await delay(random.between(300, 2_000))
  if (deck.length === 0) deck.push(...shuffledFaults(random))
  const fault = deck.pop() ?? { kind: 'down' }
  log.write({ type: 'fault', kind: `provider-${fault.kind}`, detail: JSON.stringify(fault) })
  await provider.setFault(fault)
  if (fault.requests === undefined) await delay(random.between(200, 1_500))
  else await struck(provider)
  await provider.setFault(null)
}

/** Waits until a request met the fault, but not for ever, because all processes may be dead. */
async function struck(provider: Provider): Promise<void> {
  const endMs = performance.now() + strikeLimitMs
  while ((await provider.state()).fault !== null && performance.now() < endMs) await delay(100)
}

/** For a while charges can be neither looked up nor listed. */
async function closeBooks({ provider, log }: Targets, random: Random): Promise<void> {
  await delay(random.between(4_000, 10_000))
  log.write({ type: 'fault', kind: 'provider-books-closed' })
  await provider.setBooks(false)
  await delay(random.between(500, 3_000))
  await provider.setBooks(true)
}

async function settleByHand({ settleOne, log }: Targets, random: Random): Promise<void> {
  await delay(random.between(5_000, 12_000))
  if (await settleOne()) log.write({ type: 'fault', kind: 'operator-settled' })
}

/** Each kind occurs, in any order, before any is repeated; those that cause unknowns occur twice. */
function shuffledFaults(random: Random): Fault[] {
  const requests = random.between(1, 4)
  const many = random.between(3, 6)
  const faults: Fault[] = [
    { kind: 'slow', ms: random.between(100, 2_500), requests },
    { kind: 'lose-response', requests },
    { kind: 'fail-after', requests },
    { kind: 'refuse', requests },
    { kind: 'late', ms: random.between(50, 1_500), requests },
    { kind: 'hold', ms: random.between(500, 2_500), requests: many },
    { kind: 'hold', ms: random.between(500, 2_500), requests: many },
    { kind: 'swallow', requests: many },
    { kind: 'swallow', requests: many },
    { kind: 'down' },
  ]
  return faults
    .map(fault => ({ fault, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ fault }) => fault)
}

/** Spread over the run: each kill costs a few seconds in which nothing else happens. */
async function killServer({ keys, store, seed, seconds, log }: Targets, endMs: number): Promise<void> {
  const random = randomFrom(seed, 'server')
  const times = Math.max(1, Math.floor(seconds / 28))
  const everyMs = (seconds * 1_000) / (times + 0.5)
  for (let killed = 0; killed < times; killed++) {
    const restMs = endMs - performance.now()
    await delay(Math.max(0, Math.min(restMs, everyMs * (0.7 + 0.5 * random.next()))))
    await keys.kill()
    log.write({ type: 'fault', kind: `${store === 'redis' ? 'redis' : 'postgres'}-killed` })
    await delay(random.between(100, 1_500))
    await keys.restart()
  }
}

/** A handler that kills its process. It takes several leases until its row is parked, so it is sent early. */
async function poison({ poison: send, seconds, log }: Targets, endMs: number): Promise<void> {
  const everyMs = 60_000
  for (let sent = 0; performance.now() < endMs && sent * everyMs < seconds * 1_000; sent++) {
    await delay(1_000)
    log.write({ type: 'fault', kind: 'poison-sent' })
    send()
    await delay(Math.max(0, Math.min(everyMs, endMs - performance.now())))
  }
}
