/**
 * The clients: a separate process with many of them. Each sends one request after another, and retries it under the same
 * key until there is a final answer or it gives up.
 *
 * Started by fork with a JSON argument. Messages in: { urls }, { poison }, { finish }. Messages out: { finished }.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { lostAnswerAmount } from '../../../examples/payments/src/charge.ts'
import { ask, type Ask, type Heard, look } from './ask.ts'
import { type ClientEvent, type Kind, openHistory } from '../history.ts'
import { type Random, randomFrom } from '../random.ts'
import { kindsOf, type StoreKind } from '../store-kind.ts'

export interface ClientsArgument {
  readonly directory: string
  readonly seed: number
  readonly clients: number
  readonly store: StoreKind
}

export type ToClients = { urls: string[] } | { poison: true } | { finish: true }

const { directory, seed, clients, store }: ClientsArgument = JSON.parse(process.argv[2] ?? '{}')
const history = openHistory<ClientEvent>(directory, 'clients')
const asked = new Map<string, Ask>()
/** The status resources of accepted requests, by key. */
const statusPaths = new Map<string, string>()
let urls: string[] = []
/** Keys whose row is known to be there: a misuse that comes first would be the request. */
const arrived = new Set<string>()
const avoidedUntilMs = new Map<string, number>()
let running = true
let count = 0

/**
 * How often a request is sent twice at once, by a client that waits and by one that does not. The first one hears what a stale owner answers, while
 * the second one has the row taken over. Without transactions that answer is all there is to see of a fence that is not compared.
 */
const doubled: Readonly<Record<StoreKind, number>> = { postgres: 0.1, redis: 0.5, tiered: 0.1 }
/** A person at a checkout does not retry for longer. */
const attemptsMax = 25
/** A client does not wait for accepted work; it is polled again at the end. */
const looksMax = 8
const pauseMsMax = 1_000
/** Refunds that the provider makes without ever answering. */
const lostAnswers = 0.15
const avoidMs = 1_500
/** After the faults have stopped nothing may take longer than this. */
const finalLimitMs = 150_000
const finalPauseMs = 700

/** Those that wait, until the end. */
const others: Promise<void>[] = []

async function runClient(random: Random): Promise<void> {
  while (running) {
    const next = newAsk(random, random.pick(kindsOf[store]))
    // Not waited for: with several processes paused, no client would be left.
    if (random.chance(doubled[store])) {
      others.push(persist({ ...next, patient: true }, random))
      // Mostly long enough for the one that waits to be the owner.
      await delay(random.between(0, 60))
    }
    await persist(next, random)
    if (random.chance(0.1)) await once(next, random)
    if (store === 'tiered' && random.chance(0.3)) await askAgain(next, random)
    if (arrived.has(next.key) && random.chance(0.03))
      await once({ ...next, amount: next.amount + 1 }, random, { misuse: true })
    await delay(random.between(20, 150))
  }
}

/** The first of these puts the answer into the cache, and the others find it there. */
async function askAgain(next: Ask, random: Random): Promise<void> {
  for (let times = 0; times < 4; times += 1) {
    await delay(random.between(300, 900))
    await once(next, random)
  }
}

function newAsk(random: Random, kind: Kind): Ask {
  const key = `${kind}-${count++}`
  const lost = kind === 'refunds' && random.chance(lostAnswers)
  const amount = lost ? lostAnswerAmount : random.between(1, 1_000)
  const next: Ask = { kind, key, account: `account-${random.between(1, 32)}`, amount }
  asked.set(key, next)
  return next
}

async function persist(next: Ask, random: Random): Promise<void> {
  const triesMax = next.kind === 'refunds' ? looksMax : attemptsMax
  for (let attempt = 0; attempt < triesMax && running; attempt++) {
    const heard = await once(next, random)
    if (heard.verdict !== 'later') return
    await delay(Math.min(pauseMsMax, Math.max(heard.afterMs, 50 * 2 ** attempt)) * (0.5 + random.next() / 2))
  }
}

type Marks = Pick<ClientEvent, 'misuse' | 'final'>

async function once(next: Ask, random: Random, marks: Marks = {}): Promise<Heard> {
  if (urls.length === 0) return { verdict: 'later', afterMs: 100, event: { type: 'info', error: 'no process listens' } }
  const { kind, key, account } = next
  history.write({ type: 'invoke', kind, key, account, ...marks })
  const url = pickUrl(random)
  const path = marks.misuse === true ? undefined : statusPaths.get(key)
  // Repeating the request must always work as well as polling.
  const heard = path === undefined || random.chance(0.25) ? await ask(url, next) : await look(url + path, account)
  if (heard.statusPath !== undefined) statusPaths.set(key, heard.statusPath)
  if (heard.verdict === 'final' || heard.statusPath !== undefined) arrived.add(key)
  if (heard.event.error !== undefined) avoidedUntilMs.set(url, performance.now() + avoidMs)
  history.write({ ...heard.event, kind, key, account, ...marks })
  if (path !== undefined && random.chance(0.05)) await lookAsStranger(url + path, next)
  return heard
}

async function lookAsStranger(url: string, { kind, key }: Ask): Promise<void> {
  const { event } = await look(url, 'a stranger')
  history.write({ ...event, type: 'info', kind, key, account: 'a stranger', foreign: true })
}

/** Like a load balancer: avoids a process that did not answer for a while, unless there is no other. */
function pickUrl(random: Random): string {
  const healthy = urls.filter(url => (avoidedUntilMs.get(url) ?? 0) < performance.now())
  return random.pick(healthy.length > 0 ? healthy : urls)
}

/** Sends every request again, in rounds, until its answer is final or the row waits for a person. */
async function finish(): Promise<void> {
  running = false
  await Promise.all(working)
  await Promise.all(others)
  const endMs = performance.now() + finalLimitMs
  const random = randomFrom(seed, 'final')
  let open = [...asked.values()]
  while (open.length > 0 && performance.now() < endMs) {
    open = await askAll(open, random)
    if (open.length > 0) await delay(finalPauseMs)
  }
  process.send?.({ finished: true })
}

/** Returns the requests that have to be sent again. */
async function askAll(all: readonly Ask[], random: Random): Promise<Ask[]> {
  const queue = [...all]
  const open: Ask[] = []
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { verdict } = await once(next, random, { final: true })
        if (verdict === 'later' || verdict === 'held') open.push(next)
      }
    }),
  )
  return open
}

function sendPoison(): void {
  const next: Ask = { ...newAsk(randomFrom(seed, `poison-${count}`), 'payments'), poison: true }
  asked.set(next.key, next)
  void persist(next, randomFrom(seed, next.key))
}

process.on('message', (message: ToClients) => {
  if ('urls' in message) urls = message.urls
  if ('poison' in message) sendPoison()
  if ('finish' in message) void finish()
})
process.on('disconnect', () => process.exit(1))
const working = Array.from({ length: clients }, (_, client) => runClient(randomFrom(seed, `client-${client}`)))
