/**
 * Carries the provider's webhooks to the shop, badly: some never arrive, some arrive late, out of order or twice. It also sends
 * webhooks that the provider never wrote, and copies of those it did.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChargeEvent } from '../../examples/payments/src/charge.ts'
import { type History, openHistory, type WebhookEvent } from './history.ts'
import type { Random } from './random.ts'
import { isBooksOnly } from './shop.ts'

export interface Mailman {
  /** The address that the provider sends to. */
  readonly url: string
  close(): Promise<void>
}

export interface MailmanOptions {
  readonly directory: string
  readonly secret: string
  readonly random: Random
  /** The application processes that listen now. */
  readonly urls: () => readonly string[]
}

interface Letter {
  readonly id: string
  /** The client's key. */
  readonly key: string
  readonly body: string
}

interface Signed {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const losses = 0.2
const lateArrivals = 0.35
const lateMsMax = 9_000
const copies = 0.25
const forgeries = 0.15
const staleMs = 900_000
/** A second delivery within the second of the first has the same time, and is a copy of it. */
const nextSecondMs = 1_100
const triesMax = 6
const answerWithinMs = 2_000
/** A backlog beyond this is lost. */
const underWayMax = 1_000

export async function startMailman(options: MailmanOptions): Promise<Mailman> {
  const post = postOffice(options)
  const underWay = new Set<Promise<unknown>>()
  const server = createServer((request, response) => {
    void readLetter(request).then(letter => {
      response.end()
      if (underWay.size >= underWayMax) return
      const carried: Promise<unknown> = carry(letter, options, post).finally(() => underWay.delete(carried))
      underWay.add(carried)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // listening on TCP
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      post.close()
      await Promise.all(underWay)
      await new Promise(resolve => {
        server.close(resolve)
        server.closeAllConnections()
      })
    },
  }
}

async function readLetter(request: IncomingMessage): Promise<Letter> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString()
  const { data }: ChargeEvent = JSON.parse(body)
  const [key = ''] = (data.reference ?? '').split(' ')
  return { id: String(request.headers['webhook-id']), key, body }
}

/** The fate of a letter is drawn at once, so that the speed of one delivery does not change the fate of the next. */
async function carry(letter: Letter, { random, secret }: MailmanOptions, post: PostOffice): Promise<void> {
  const chance = {
    forged: random.chance(forgeries),
    stale: random.chance(forgeries / 2),
    lost: random.chance(losses) || isBooksOnly(letter.key),
  }
  const lateMs = random.chance(lateArrivals) ? random.between(200, lateMsMax) : 0
  const again = { chance: random.chance(copies), ms: random.between(nextSecondMs, 4_000) }
  const copy = { chance: random.chance(copies), ms: random.between(0, 2_000) }
  if (chance.forged) await post.send(letter, 'forged', forged(letter, secret, random))
  if (chance.stale) await post.send(letter, 'stale', sign(letter, secret, Date.now() - staleMs))
  if (chance.lost) return
  await post.wait(lateMs)
  const taken = await deliver(letter, secret, post)
  if (taken === undefined) return
  await Promise.all([
    copy.chance && post.wait(copy.ms).then(() => post.send(letter, 'replayed', taken)),
    again.chance && post.wait(again.ms).then(() => post.send(letter, 'again', sign(letter, secret, Date.now()))),
  ])
}

/** Like the provider: retries until it is accepted, each time signed anew. Returns the accepted bytes. */
async function deliver(letter: Letter, secret: string, post: PostOffice): Promise<Signed | undefined> {
  for (let tries = 0; tries < triesMax && !post.closed(); tries++) {
    const signed = sign(letter, secret, Date.now())
    if ((await post.send(letter, 'genuine', signed)) === 200) return signed
    await post.wait(nextSecondMs * 1.5 ** tries)
  }
  return undefined
}

/** Each names another charge: if believed, a client would get a charge that does not exist. */
function forged({ id, key, body }: Letter, secret: string, random: Random): Signed {
  const event: ChargeEvent = JSON.parse(body)
  const changed = JSON.stringify({ ...event, data: { ...event.data, id: 'ch_forged' } })
  const strange = `whsec_${randomBytes(24).toString('base64')}`
  if (random.chance(0.5)) return sign({ id, key, body: changed }, strange, Date.now())
  return { ...sign({ id, key, body }, secret, Date.now()), body: changed }
}

function sign({ id, body }: Letter, secret: string, atMs: number): Signed {
  const timestamp = String(Math.floor(atMs / 1_000))
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const webhook = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  return { headers: { 'content-type': 'application/json', ...webhook }, body }
}

interface PostOffice {
  /** One try at one process, recorded. Returns the status; undefined: no answer. */
  send(letter: Letter, how: WebhookEvent['how'], signed: Signed): Promise<number | undefined>
  /** Ends early when the mailman closes. */
  wait(ms: number): Promise<void>
  closed(): boolean
  close(): void
}

function postOffice({ directory, random, urls }: MailmanOptions): PostOffice {
  const history: History<WebhookEvent> = openHistory(directory, 'webhooks')
  const over = new AbortController()
  // Each letter that waits listens to it; how many may is said above.
  setMaxListeners(0, over.signal)
  return {
    async send({ key }, how, signed) {
      const open = urls()
      if (open.length === 0 || over.signal.aborted) return undefined
      const sent = await sendTo(random.pick(open), signed)
      history.write({ type: 'webhook', how, key, ...sent })
      return sent.status
    },
    wait: ms => delay(ms, undefined, { signal: over.signal }).catch(() => undefined),
    closed: () => over.signal.aborted,
    close: () => over.abort(),
  }
}

async function sendTo(url: string, { headers, body }: Signed): Promise<Pick<WebhookEvent, 'status' | 'detail'>> {
  try {
    const signal = AbortSignal.timeout(answerWithinMs)
    const response = await fetch(`${url}/webhooks`, { method: 'POST', headers, body, signal })
    const answer: { reason?: string } = await response.json().then(
      value => value as { reason?: string }, // as the shop answers senders
      () => ({}),
    )
    return { status: response.status, ...(answer.reason === undefined ? {} : { detail: answer.reason }) }
  } catch (error) {
    return { detail: String(error) }
  }
}
