/** What the outbox cases start from: appended messages and a minimal relay. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Batch,
  type DeliveryEnd,
  type LaneLease,
  type Message,
  type NewMessage,
  type Outbox,
  systemClock,
  type TransactionEnd,
  type Transactor,
} from 'latchkey'
import type { StoreHarness } from '../store-harness.ts'
import { newClaimId } from '../store/fixture.ts'

export interface OutboxCase {
  /** A sentence about behaviour. */
  readonly name: string
  /** Run only where transactions of several writers can be open at once, or where the store has the operators' tables. */
  readonly needs?: 'several-writers' | 'admin'
  run(harness: StoreHarness): Promise<void>
}

export interface OutboxFixture {
  readonly outbox: Outbox<unknown>
  readonly transactor: Transactor<unknown>
}

export const minuteMs = 60_000
export const hourMs: number = 60 * minuteMs
/** Real clocks run by themselves: so long that a slow machine cannot exceed it by accident. */
export const leaseMs: number = 10 * minuteMs
export const act = { by: 'on-call', reason: 'the consumer was repaired' } as const
export const newLeaseId: () => string = newClaimId

export async function openFixture(harness: StoreHarness): Promise<OutboxFixture> {
  const { outbox, transactor, name } = await harness.open()
  assert.ok(outbox && transactor, `${name} has no outbox`)
  return { outbox, transactor }
}

/** `text` is the dedup id and the payload. */
export function message(text: string, over: Partial<NewMessage> = {}): NewMessage {
  const payload = new TextEncoder().encode(text)
  return { topic: 'orders', aggregate: undefined, dedupId: text, payload, headers: {}, ...over }
}

/** `a1, a2, …` of aggregate `a`. */
export function messagesOf(aggregate: string, count: number): readonly NewMessage[] {
  return Array.from({ length: count }, (_, index) => message(`${aggregate}${index + 1}`, { aggregate }))
}

/** Committed and readable: other transactions, in any database of the server, may hold a message back for a moment. */
export async function append(fixture: OutboxFixture, messages: readonly NewMessage[]): Promise<void> {
  assert.equal((await appendOnly(fixture, messages, 'commit')).kind, 'committed')
  await untilReadable(fixture)
}

export function appendOnly(
  { outbox, transactor }: OutboxFixture,
  messages: readonly NewMessage[],
  end: 'commit' | 'rollback',
): Promise<TransactionEnd> {
  return transactor.transaction(async own => {
    const tx = await transactor.adopt(own)
    for (const each of messages) await outbox.append(tx, each)
    return end
  })
}

const readableWaitMs = 30_000

/** For cases that do not hold a transaction open themselves. */
export async function untilReadable({ outbox }: OutboxFixture): Promise<void> {
  const untilMs = systemClock.monotonicMs() + readableWaitMs
  while ((await outbox.lag()).heldBack > 0) {
    assert.ok(systemClock.monotonicMs() < untilMs, 'a transaction that is open somewhere holds the messages back')
    await pause(10)
  }
}

/** The consumer's reply to a message. Default: it accepts everything. */
export type Consumer = (message: Message) => DeliveryEnd['kind'] | DeliveryEnd

export interface RelayOptions {
  readonly limit?: number
  readonly consume?: Consumer
}

export function delivered({ position }: Message, downstreamId?: string): DeliveryEnd {
  return { kind: 'delivered', position, downstreamId }
}

export function failed(
  { position }: Message,
  { aggregate = 'block', dueInMs, error = 'HTTP 503' }: FailOptions = {},
): DeliveryEnd {
  const next = dueInMs === undefined ? ({ kind: 'park' } as const) : ({ kind: 'retry', dueInMs } as const)
  return { kind: 'failed', position, error, next, aggregate }
}

export interface FailOptions {
  readonly aggregate?: 'block' | 'skip'
  /** Absent: parked. */
  readonly dueInMs?: number
  readonly error?: string
}

/** Works until no lane has anything to do; returns the dedup ids in the order in which the consumer got them. */
export async function drain({ outbox }: OutboxFixture, options: RelayOptions = {}): Promise<readonly string[]> {
  const seen: string[] = []
  for (;;) {
    const lease = await outbox.leaseLane({ leaseId: newLeaseId(), leaseMs })
    if (lease === undefined) return seen
    seen.push(...(await work(outbox, lease, options)))
  }
}

async function work(outbox: Outbox<unknown>, lease: LaneLease, options: RelayOptions): Promise<readonly string[]> {
  const { limit = 10, consume = delivered } = options
  const seen: string[] = []
  for (;;) {
    const batch = await outbox.next(lease, { limit })
    assert.ok(batch !== 'lease-lost', 'a relay that holds its lane got lease-lost')
    assert.ok(batch.messages.length + batch.behind.length <= limit, 'a batch is larger than its limit')
    const ends = consumeInOrder(batch, consume, seen)
    const then = batch.more ? ({ kind: 'keep', leaseMs } as const) : ({ kind: 'release' } as const)
    assert.equal(await outbox.settle(lease, { batch, ends, then }), 'written')
    if (!batch.more) return seen
  }
}

/** After a failure that blocks, no later message of the aggregate is tried. */
function consumeInOrder(batch: Batch, consume: Consumer, seen: string[]): readonly DeliveryEnd[] {
  const blocked = new Set<string>()
  return batch.messages.flatMap(each => {
    if (each.aggregate !== undefined && blocked.has(each.aggregate)) return []
    seen.push(each.dedupId)
    const said = consume(each)
    const end = typeof said === 'string' ? (said === 'delivered' ? delivered(each) : failed(each)) : said
    if (end.kind === 'failed' && end.aggregate === 'block' && each.aggregate) blocked.add(each.aggregate)
    return [end]
  })
}

/** Those of one aggregate, in the order given. */
export function only(seen: readonly string[], aggregate: string): readonly string[] {
  return seen.filter(text => text.startsWith(aggregate))
}

export async function leased({ outbox }: OutboxFixture): Promise<LaneLease> {
  const lease = await outbox.leaseLane({ leaseId: newLeaseId(), leaseMs })
  assert.ok(lease, 'expected a lane with something to do')
  return lease
}

export async function batchOf({ outbox }: OutboxFixture, lease: LaneLease, limit = 10): Promise<Batch> {
  const batch = await outbox.next(lease, { limit })
  assert.ok(batch !== 'lease-lost')
  return batch
}

export function dedupIds(messages: readonly Message[]): readonly string[] {
  return messages.map(each => each.dedupId)
}
