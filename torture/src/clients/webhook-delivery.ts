/**
 * Delivers the provider's webhooks to the shop, badly: some never arrive, some arrive late, out of order or twice. It also sends
 * webhooks that the provider never wrote, and copies of those it did.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChargeEvent } from '../../../examples/payments/src/charge.ts'
import { type History, openHistory, type WebhookEvent } from '../history.ts'
import type { Random } from '../random.ts'
import { isBooksOnly } from '../app/shop.ts'

export interface WebhookDelivery {
  /** The address that the provider sends to. */
  readonly url: string
  close(): Promise<void>
}

export interface WebhookDeliveryOptions {
  readonly directory: string
  readonly secret: string
  readonly random: Random
  /** The application processes that listen now. */
  readonly urls: () => readonly string[]
}

interface Webhook {
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

export async function startWebhookDelivery(options: WebhookDeliveryOptions): Promise<WebhookDelivery> {
  const sender = openSender(options)
  const underWay = new Set<Promise<unknown>>()
  const server = createServer((request, response) => {
    void readWebhook(request).then(webhook => {
      response.end()
      if (underWay.size >= underWayMax) return
      const delivered: Promise<unknown> = deliverBadly(webhook, options, sender).finally(() =>
        underWay.delete(delivered),
      )
      underWay.add(delivered)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // listening on TCP
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      sender.close()
      await Promise.all(underWay)
      await new Promise(resolve => {
        server.close(resolve)
        server.closeAllConnections()
      })
    },
  }
}

async function readWebhook(request: IncomingMessage): Promise<Webhook> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString()
  const { data }: ChargeEvent = JSON.parse(body)
  const [key = ''] = (data.reference ?? '').split(' ')
  return { id: String(request.headers['webhook-id']), key, body }
}

/** The fate of a webhook is drawn at once, so that the speed of one delivery does not change the fate of the next. */
async function deliverBadly(
  webhook: Webhook,
  { random, secret }: WebhookDeliveryOptions,
  sender: Sender,
): Promise<void> {
  const chance = {
    forged: random.chance(forgeries),
    stale: random.chance(forgeries / 2),
    lost: random.chance(losses) || isBooksOnly(webhook.key),
  }
  const lateMs = random.chance(lateArrivals) ? random.between(200, lateMsMax) : 0
  const again = { chance: random.chance(copies), ms: random.between(nextSecondMs, 4_000) }
  const copy = { chance: random.chance(copies), ms: random.between(0, 2_000) }
  if (chance.forged) await sender.send(webhook, 'forged', forged(webhook, secret, random))
  if (chance.stale) await sender.send(webhook, 'stale', sign(webhook, secret, Date.now() - staleMs))
  if (chance.lost) return
  await sender.wait(lateMs)
  const taken = await deliver(webhook, secret, sender)
  if (taken === undefined) return
  await Promise.all([
    copy.chance && sender.wait(copy.ms).then(() => sender.send(webhook, 'replayed', taken)),
    again.chance && sender.wait(again.ms).then(() => sender.send(webhook, 'again', sign(webhook, secret, Date.now()))),
  ])
}

/** Like the provider: retries until it is accepted, each time signed anew. Returns the accepted bytes. */
async function deliver(webhook: Webhook, secret: string, sender: Sender): Promise<Signed | undefined> {
  for (let tries = 0; tries < triesMax && !sender.closed(); tries++) {
    const signed = sign(webhook, secret, Date.now())
    if ((await sender.send(webhook, 'genuine', signed)) === 200) return signed
    await sender.wait(nextSecondMs * 1.5 ** tries)
  }
  return undefined
}

/** Each names another charge: if believed, a client would get a charge that does not exist. */
function forged({ id, key, body }: Webhook, secret: string, random: Random): Signed {
  const event: ChargeEvent = JSON.parse(body)
  const changed = JSON.stringify({ ...event, data: { ...event.data, id: 'ch_forged' } })
  const strange = `whsec_${randomBytes(24).toString('base64')}`
  if (random.chance(0.5)) return sign({ id, key, body: changed }, strange, Date.now())
  return { ...sign({ id, key, body }, secret, Date.now()), body: changed }
}

function sign({ id, body }: Webhook, secret: string, atMs: number): Signed {
  const timestamp = String(Math.floor(atMs / 1_000))
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const webhook = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  return { headers: { 'content-type': 'application/json', ...webhook }, body }
}

interface Sender {
  /** One try at one process, recorded. Returns the status; undefined: no answer. */
  send(webhook: Webhook, how: WebhookEvent['how'], signed: Signed): Promise<number | undefined>
  /** Ends early when the delivery closes. */
  wait(ms: number): Promise<void>
  closed(): boolean
  close(): void
}

function openSender({ directory, random, urls }: WebhookDeliveryOptions): Sender {
  const history: History<WebhookEvent> = openHistory(directory, 'webhooks')
  const over = new AbortController()
  // Each webhook that waits listens to it; how many may is said above.
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
