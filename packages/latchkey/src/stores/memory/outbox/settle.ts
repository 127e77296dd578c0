/** The end of a batch. */
import type { DeliveryEnd, LaneLease, LaneResult, Settlement } from '../../../ports/outbox.ts'
import { waitingPositions, withFailure } from '../../shared/outbox/batch.ts'
import { wakeMax } from '../../shared/outbox/message.ts'
import type { Tables } from '../tables.ts'
import { asideOf, type Lane, leasedLane } from './lanes.ts'
import { newAside } from './next.ts'

export function settleBatch(tables: Tables, lease: LaneLease, { batch, ends, then }: Settlement): LaneResult {
  const lane = leasedLane(tables, lease)
  if (lane === undefined) return 'lease-lost'
  const nowMs = tables.now()
  advance(lane, then.kind === 'keep' ? nowMs + then.leaseMs : undefined)
  const { through } = batch
  if (through !== undefined) lane.fresh = lane.fresh.filter(({ position }) => position > Number(through))
  const freed = ends.map(end => (end.kind === 'delivered' ? deliver(tables, lane, end) : setAside(tables, lane, end)))
  // After the others: whether something stands before them is seen in the table.
  const behind = waitingPositions(batch, ends).map(Number)
  for (const position of behind.toSorted((one, other) => one - other)) standBehind(tables, lane, position)
  for (const aggregate of new Set(freed)) if (aggregate !== undefined) wake(lane, aggregate, nowMs)
  return 'written'
}

function advance(lane: Lane, lockedUntilMs: number | undefined): void {
  lane.crashes = 0
  lane.probing = false
  lane.lockedUntilMs = lockedUntilMs
  if (lockedUntilMs === undefined) lane.leaseId = undefined
}

type End<Kind extends DeliveryEnd['kind']> = Extract<DeliveryEnd, { kind: Kind }>

/** The aggregate whose next message may go, if this one stood before it. */
function deliver({ outbox }: Tables, lane: Lane, { position, downstreamId }: End<'delivered'>): string | undefined {
  const at = Number(position)
  if (downstreamId !== undefined && !outbox.downstreamIds.has(at)) outbox.downstreamIds.set(at, downstreamId)
  const gone = lane.aside.get(at)
  lane.aside.delete(at)
  return gone?.message.aggregate
}

/** As `deliver`: a failure that blocks nothing frees the others of its aggregate. */
function setAside({ outbox, now }: Tables, lane: Lane, end: End<'failed'>): string | undefined {
  const message = outbox.messages.get(Number(end.position))
  if (message === undefined) return undefined
  const before = lane.aside.get(message.position) ?? newAside(message)
  const blocks = end.aggregate === 'block' && message.aggregate !== undefined
  lane.aside.set(message.position, {
    ...before,
    blocks,
    suspect: false,
    attempts: before.attempts + 1,
    dueAtMs: end.next.kind === 'retry' ? now() + end.next.dueInMs : undefined,
    parkedAtMs: end.next.kind === 'park' ? now() : undefined,
    cause: end.error,
    history: withFailure(before.history, { atMs: now(), error: end.error }),
  })
  return blocks ? undefined : message.aggregate
}

/** Not due where something of the aggregate stands before it, which wakes it when it goes; due now otherwise. */
function standBehind({ outbox, now }: Tables, lane: Lane, position: number): void {
  const message = outbox.messages.get(position)
  if (message === undefined || lane.aside.has(position)) return
  const { aggregate } = message
  const waits =
    aggregate !== undefined &&
    [...lane.aside.values()].some(
      one => one.blocks && one.message.aggregate === aggregate && one.message.position < position,
    )
  const dueAtMs = waits ? undefined : now()
  lane.aside.set(position, { ...newAside(message), blocks: aggregate !== undefined, dueAtMs })
}

/** The next messages of the aggregate that waited behind one that is gone. */
export function wake(lane: Lane, aggregate: string, nowMs: number): void {
  const waiting = asideOf(lane)
    .filter(one => one.message.aggregate === aggregate)
    .filter(one => one.dueAtMs === undefined && one.parkedAtMs === undefined)
  for (const one of waiting.slice(0, wakeMax)) lane.aside.set(one.message.position, { ...one, dueAtMs: nowMs })
}
