/** Delivering one batch: in order within an aggregate, several aggregates at once. */
import type { DeliveryResult, Target } from '../ports/broker.ts'
import type { Clock } from '../ports/clock.ts'
import type { Batch, DeliveryEnd, Message } from '../ports/outbox.ts'
import type { RelayPolicy } from './policy.ts'

export interface DeliveryParts {
  readonly targets: Readonly<Record<string, Target>>
  readonly clock: Clock
  readonly policy: RelayPolicy
  readonly faultPoint: (name: 'relay:before-deliver' | 'relay:after-deliver') => void
}

/** Messages without an end were not tried: behind a failure, or because the lane was lost. Never rejects. */
export async function deliverBatch(
  parts: DeliveryParts,
  { messages }: Batch,
  lost: AbortSignal,
): Promise<readonly DeliveryEnd[]> {
  const lines = linesOf(messages)
  const ends: DeliveryEnd[] = []
  const worker = async () => {
    for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
      for await (const end of deliverLine(parts, line, lost)) ends.push(end)
    }
  }
  await Promise.all(Array.from({ length: Math.min(parts.policy.concurrency, lines.length) }, worker))
  return ends
}

/** One line for each aggregate, and one for each message without. */
function linesOf(messages: readonly Message[]): Message[][] {
  const lines = new Map<string, Message[]>()
  for (const message of messages) {
    const name = message.aggregate === undefined ? `m${message.position}` : `a${message.aggregate}`
    const line = lines.get(name)
    if (line === undefined) lines.set(name, [message])
    else line.push(message)
  }
  return [...lines.values()]
}

async function* deliverLine(
  parts: DeliveryParts,
  line: readonly Message[],
  lost: AbortSignal,
): AsyncGenerator<DeliveryEnd> {
  for (const message of line) {
    if (lost.aborted) return
    const result = await deliverOne(parts, message, lost)
    // Cut off by us, not by the target: it counts as not tried.
    if (lost.aborted && result.kind !== 'delivered') return
    const end = endOf(parts, message, result)
    yield end
    if (end.kind === 'failed' && end.aggregate === 'block') return
  }
}

async function deliverOne(parts: DeliveryParts, message: Message, lost: AbortSignal): Promise<DeliveryResult> {
  const { targets, policy, clock, faultPoint } = parts
  if (message.crashes >= policy.crashBudget) {
    return { kind: 'refused', error: `poison: ${message.crashes} relays died while delivering it` }
  }
  const target = targetOf(targets, message.topic)
  if (target === undefined) return { kind: 'failed', error: 'no-target' }
  faultPoint('relay:before-deliver')
  const result = await bounded(clock, policy.timeoutMs, lost, signal => target.deliver(message, { signal }))
  faultPoint('relay:after-deliver')
  return result
}

function targetOf(targets: Readonly<Record<string, Target>>, topic: string): Target | undefined {
  if (Object.hasOwn(targets, topic)) return targets[topic]
  return Object.hasOwn(targets, '*') ? targets['*'] : undefined
}

/** A target that heeds no signal is not waited for: what it does later is a copy with the same dedup id. */
async function bounded(
  clock: Clock,
  timeoutMs: number,
  lost: AbortSignal,
  deliver: (signal: AbortSignal) => Promise<DeliveryResult>,
): Promise<DeliveryResult> {
  const over = new AbortController()
  const given = new Promise<DeliveryResult>(resolve => {
    over.signal.addEventListener('abort', () => resolve({ kind: 'failed', error: String(over.signal.reason) }))
  })
  const giveUp = () => over.abort('lease-lost')
  lost.addEventListener('abort', giveUp, { once: true })
  const cancel = clock.after(timeoutMs, () => over.abort('timeout'))
  try {
    return await Promise.race([Promise.resolve().then(() => deliver(over.signal)), given])
  } catch (error) {
    return { kind: 'failed', error: errorCode(error) }
  } finally {
    cancel()
    lost.removeEventListener('abort', giveUp)
  }
}

/** A name or code, never a message: that may hold personal data, and the list of parked messages is shown to people. */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'error'
  const cause = 'code' in error ? error : (error.cause ?? error)
  const code: unknown = typeof cause === 'object' && cause !== null ? Reflect.get(cause, 'code') : undefined
  return typeof code === 'string' ? code : error.name
}

function endOf({ policy, clock }: DeliveryParts, message: Message, result: DeliveryResult): DeliveryEnd {
  const { position } = message
  const { aggregate } = policy
  if (result.kind === 'delivered') return { kind: 'delivered', position, downstreamId: result.downstreamId }
  const attempt = message.attempts + 1
  if (result.kind === 'refused' || attempt >= policy.budget) {
    return { kind: 'failed', position, error: result.error, next: { kind: 'park' }, aggregate }
  }
  const dueInMs = Math.max(backoffMs(policy, attempt, clock.random()), result.retryAfterMs ?? 0)
  return { kind: 'failed', position, error: result.error, next: { kind: 'retry', dueInMs }, aggregate }
}

/** Half fixed, half by chance, so that those who failed together do not come back together. */
function backoffMs({ backoffMs: base, backoffMsMax }: RelayPolicy, attempt: number, chance: number): number {
  const fullMs = Math.min(base * 2 ** Math.min(attempt - 1, 30), backoffMsMax)
  return fullMs * (0.5 + chance / 2)
}
