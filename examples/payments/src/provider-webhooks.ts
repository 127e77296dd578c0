/** The provider's webhooks: signed, redelivered until they are accepted, and lost when its process dies. */
import { createHmac, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Charge, ChargeEvent, WebhookTarget } from './charge.ts'

/** A receiver that is down for longer has other ways to find out. */
const retryAfterMs = [500, 2_000, 5_000, 15_000, 30_000]
const answerWithinMs = 5_000

/** `target` is called for each try, because the receiver may have moved. Resolves when the event was accepted or there is no receiver. */
export async function sendWebhook(charge: Charge, target: () => WebhookTarget | null): Promise<void> {
  const id = `evt_${randomUUID()}`
  const event: ChargeEvent = { type: 'charge.succeeded', data: charge }
  await delay(target()?.delayMs ?? 0, undefined, { ref: false })
  for (const pauseMs of [...retryAfterMs, 0]) {
    const to = target()
    if (to === null) return
    if (await isTaken(to.url, signed({ id, secret: to.secret, body: JSON.stringify(event) }))) return
    await delay(pauseMs, undefined, { ref: false })
  }
}

async function isTaken(url: string, request: RequestInit): Promise<boolean> {
  try {
    const response = await fetch(url, { method: 'POST', signal: AbortSignal.timeout(answerWithinMs), ...request })
    await response.body?.cancel()
    return response.ok
  } catch {
    return false
  }
}

/** Each delivery is signed anew, with the same id and a new time. */
export function signed({ id, secret, body }: { id: string; secret: string; body: string }): RequestInit {
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  }
}

/** Undefined: not a target. */
export function parseWebhookTarget(value: unknown): WebhookTarget | null | undefined {
  if (value === null) return null
  if (typeof value !== 'object') return undefined
  // Each member is checked below, before its type is relied on.
  const { url, secret, delayMs } = value as Record<string, unknown>
  if (typeof url !== 'string' || !URL.canParse(url) || typeof secret !== 'string') return undefined
  if (delayMs === undefined) return { url, secret }
  return typeof delayMs === 'number' && delayMs >= 0 ? { url, secret, delayMs } : undefined
}
