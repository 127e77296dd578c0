/**
 * The clients: a process of its own with many of them, each sending one request after another and repeating it, under the
 * same key, until there is a final answer or its patience ends.
 *
 * Started by fork with a JSON argument. Messages in: { urls }, { poison }, { finish }. Messages out: { finished }.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { ask, type Ask, type Heard } from './ask.ts'
import { type ClientEvent, type Kind, openHistory } from './history.ts'
import { type Random, randomFrom } from './random.ts'

export interface ClientsArgument {
  readonly directory: string
  readonly seed: number
  readonly clients: number
}

export type ToClients = { urls: string[] } | { poison: true } | { finish: true }

const { directory, seed, clients }: ClientsArgument = JSON.parse(process.argv[2] ?? '{}')
const history = openHistory<ClientEvent>(directory, 'clients')
const asked = new Map<string, Ask>()
let urls: string[] = []
const avoidedUntilMs = new Map<string, number>()
let running = true
let count = 0

/** A person at a checkout does not try for longer. */
const attemptsMax = 25
const pauseMsMax = 1_000
const avoidMs = 1_500
/** After the faults have stopped nothing may take longer than this. */
const finalLimitMs = 60_000

const kinds: readonly Kind[] = [
  'orders',
  'orders',
  'orders',
  'payments',
  'payments',
  'payments',
  'payments',
  'transfers',
  'payouts',
]

async function runClient(random: Random): Promise<void> {
  while (running) {
    const next = newAsk(random, random.pick(kinds))
    const other = random.chance(0.1) ? persist(next, random) : undefined
    await persist(next, random)
    await other
    if (random.chance(0.1)) await once(next, random)
    if (random.chance(0.03)) await once({ ...next, amount: next.amount + 1 }, random, { misuse: true })
    await delay(random.between(20, 150))
  }
}

function newAsk(random: Random, kind: Kind): Ask {
  const key = `${kind}-${count++}`
  const next: Ask = { kind, key, account: `account-${random.between(1, 32)}`, amount: random.between(1, 1_000) }
  asked.set(key, next)
  return next
}

async function persist(next: Ask, random: Random): Promise<void> {
  for (let attempt = 0; attempt < attemptsMax && running; attempt++) {
    const heard = await once(next, random)
    if (heard.verdict !== 'later') return
    await delay(Math.min(pauseMsMax, Math.max(heard.afterMs, 50 * 2 ** attempt)) * (0.5 + random.next() / 2))
  }
}

type Marks = Pick<ClientEvent, 'misuse' | 'final'>

async function once(next: Ask, random: Random, marks: Marks = {}): Promise<Heard> {
  if (urls.length === 0) return { verdict: 'later', afterMs: 100, event: { type: 'info', error: 'nobody listens' } }
  const { kind, key, account } = next
  history.write({ type: 'invoke', kind, key, account, ...marks })
  const url = pickUrl(random)
  const heard = await ask(url, next)
  if (heard.event.error !== undefined) avoidedUntilMs.set(url, performance.now() + avoidMs)
  history.write({ ...heard.event, kind, key, account, ...marks })
  return heard
}

/** As a load balancer does: whoever did not answer is left alone for a while, unless nobody else is there. */
function pickUrl(random: Random): string {
  const healthy = urls.filter(url => (avoidedUntilMs.get(url) ?? 0) < performance.now())
  return random.pick(healthy.length > 0 ? healthy : urls)
}

/** Everything that was ever asked is asked again, until its answer is final or somebody has to look at it. */
async function finish(): Promise<void> {
  running = false
  await Promise.all(working)
  const queue = [...asked.values()]
  const endMs = performance.now() + finalLimitMs
  const random = randomFrom(seed, 'final')
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        while ((await once(next, random, { final: true })).verdict === 'later' && performance.now() < endMs)
          await delay(300)
      }
    }),
  )
  process.send?.({ finished: true })
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
