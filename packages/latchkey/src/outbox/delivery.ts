/** Delivering one batch: in order within an aggregate, several aggregates at once. */
import type { DeliveryResult, Target } from '../ports/broker.ts'
import type { Clock } from '../ports/clock.ts'
import type { Batch, DeliveryEnd, Message } from '../ports/outbox.ts'
import { type Attempts, openAttempts } from './attempts.ts'
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
  const waiting = lines.values()
  const attempts = openAttempts({ clock: parts.clock, timeoutMs: parts.policy.timeoutMs, lost })
  const batch: BatchParts = { ...parts, lost, attempts, ends: [] }
  const workers = Math.min(parts.policy.concurrency, lines.length)
  await Promise.all(Array.from({ length: workers }, () => deliverLines(batch, waiting)))
  attempts.close()
  return batch.ends
}

/** One line for each aggregate, and one for each message without. */
function linesOf(messages: readonly Message[]): Message[][] {
  const lines: Message[][] = []
  const ofAggregate = new Map<string, Message[]>()
  for (const message of messages) {
    const { aggregate } = message
    const line = aggregate === undefined ? undefined : ofAggregate.get(aggregate)
    if (line !== undefined) {
      line.push(message)
      continue
    }
    const begun = [message]
    lines.push(begun)
    if (aggregate !== undefined) ofAggregate.set(aggregate, begun)
  }
  return lines
}

interface BatchParts extends DeliveryParts {
  readonly lost: AbortSignal
  readonly attempts: Attempts
  readonly ends: DeliveryEnd[]
}

/** One line after the other, until there is none left that nobody has begun. */
async function deliverLines(batch: BatchParts, lines: Iterable<readonly Message[]>): Promise<void> {
  const { lost, ends } = batch
  for (const line of lines) {
    for (const message of line) {
      if (lost.aborted) return
      const result = await deliverOne(batch, message)
      // Cut off by us, not by the target: it counts as not tried.
      if (lost.aborted && result.kind !== 'delivered') return
      const end = endOf(batch, message, result)
      ends.push(end)
      if (end.kind === 'failed' && end.aggregate === 'block') break
    }
  }
}

async function deliverOne(batch: BatchParts, message: Message): Promise<DeliveryResult> {
  const { targets, policy, attempts, faultPoint } = batch
  if (message.crashes >= policy.crashesMax) {
    return { kind: 'refused', error: `poison: ${message.crashes} relays died while delivering it` }
  }
  const target = targetOf(targets, message.topic)
  if (target === undefined) return { kind: 'failed', error: 'no-target' }
  faultPoint('relay:before-deliver')
  const result = await attempts.deliver(target, message)
  faultPoint('relay:after-deliver')
  return result
}

function targetOf(targets: Readonly<Record<string, Target>>, topic: string): Target | undefined {
  if (Object.hasOwn(targets, topic)) return targets[topic]
  return Object.hasOwn(targets, '*') ? targets['*'] : undefined
}

function endOf({ policy, clock }: DeliveryParts, message: Message, result: DeliveryResult): DeliveryEnd {
  const { position } = message
  const { aggregate } = policy
  if (result.kind === 'delivered') return { kind: 'delivered', position, downstreamId: result.downstreamId }
  const attempt = message.attempts + 1
  if (result.kind === 'refused' || attempt >= policy.attemptsMax) {
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
