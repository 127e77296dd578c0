/** Delivers one batch: in order within an aggregate, several aggregates at once. */
import type { DeliveryResult, Target } from '../ports/target.ts'
import type { Clock } from '../ports/clock.ts'
import { faultPoint } from '../ports/telemetry.ts'
import type { Batch, DeliveryEnd, Message } from '../ports/outbox.ts'
import { isSealedMessage } from '../ports/sealed-marks.ts'
import { type Attempts, openAttempts } from './attempts.ts'
import type { RelayPolicy } from './policy.ts'
import type { Preparations } from './prepare.ts'

export interface DeliveryContext {
  readonly preparations: Preparations
  readonly targets: Readonly<Record<string, Target>>
  readonly clock: Clock
  readonly policy: RelayPolicy
}

/** Messages without an end were not tried: they were behind a failure, or the lane was lost. Never rejects. */
export async function deliverBatch(
  context: DeliveryContext,
  { messages }: Batch,
  lost: AbortSignal,
): Promise<readonly DeliveryEnd[]> {
  const attempts = openAttempts({ clock: context.clock, timeoutMs: context.policy.timeoutMs, lost })
  const batch: BatchContext = { ...context, lost, attempts, ends: [] }
  const groups = byConcurrency(context, linesOf(messages))
  await Promise.all([...groups].flatMap(([concurrency, lines]) => deliverGroup(batch, { concurrency, lines })))
  attempts.close()
  return batch.ends
}

/** One line for each aggregate, and one for each message without an aggregate. */
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
    const newLine = [message]
    lines.push(newLine)
    if (aggregate !== undefined) ofAggregate.set(aggregate, newLine)
  }
  return lines
}

/** By how many may be under way at once: as many as the most sparing target of a line takes. */
function byConcurrency({ targets, policy }: DeliveryContext, lines: Message[][]): Map<number, Message[][]> {
  const groups = new Map<number, Message[][]>()
  for (const line of lines) {
    const bounds = line.map(({ topic }) => targetOf(targets, topic)?.concurrency ?? policy.concurrency)
    const concurrency = Math.min(...bounds)
    const group = groups.get(concurrency)
    if (group === undefined) groups.set(concurrency, [line])
    else group.push(line)
  }
  return groups
}

interface BatchContext extends DeliveryContext {
  readonly lost: AbortSignal
  readonly attempts: Attempts
  readonly ends: DeliveryEnd[]
}

interface Group {
  readonly concurrency: number
  readonly lines: readonly Message[][]
}

function deliverGroup(batch: BatchContext, { concurrency, lines }: Group): Promise<void>[] {
  const waiting = lines.values()
  return Array.from({ length: Math.min(concurrency, lines.length) }, () => deliverLines(batch, waiting))
}

/** Takes one line after the other until none is left. */
async function deliverLines(batch: BatchContext, lines: Iterable<readonly Message[]>): Promise<void> {
  const { lost, ends } = batch
  for (const line of lines) {
    for (const message of line) {
      if (lost.aborted) return
      const result = await deliverOne(batch, message)
      // Aborted by us, not by the target: it counts as not tried.
      if (lost.aborted && result.kind !== 'delivered') return
      const end = endOf(batch, message, result)
      ends.push(end)
      if (end.kind === 'failed' && end.aggregate === 'block') break
    }
  }
}

async function deliverOne(batch: BatchContext, message: Message): Promise<DeliveryResult> {
  const { targets, policy, attempts, preparations } = batch
  if (message.crashes >= policy.crashesMax) {
    return { kind: 'refused', error: `poison: ${message.crashes} relays crashed while delivering it` }
  }
  // Also one that is still encrypted: this relay was given the outbox of the store, and not that of a Latchkey with its keys.
  if (message.unreadable !== undefined || isSealedMessage(message))
    return { kind: 'refused', error: 'message-unreadable' }
  const target = targetOf(targets, message.topic)
  if (target === undefined) return { kind: 'failed', error: 'no-target' }
  faultPoint('relay:before-deliver')
  const result = await attempts.deliver(preparations.prepared(target), message)
  faultPoint('relay:after-deliver')
  return result
}

function targetOf(targets: Readonly<Record<string, Target>>, topic: string): Target | undefined {
  if (Object.hasOwn(targets, topic)) return targets[topic]
  return Object.hasOwn(targets, '*') ? targets['*'] : undefined
}

function endOf({ policy, clock }: DeliveryContext, message: Message, result: DeliveryResult): DeliveryEnd {
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

/** Half fixed, half random, so that messages that failed together are not retried together. */
function backoffMs({ backoffMs: base, backoffMsMax }: RelayPolicy, attempt: number, chance: number): number {
  const fullMs = Math.min(base * 2 ** Math.min(attempt - 1, 30), backoffMsMax)
  return fullMs * (0.5 + chance / 2)
}
