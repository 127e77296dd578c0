/** The messages, and leasing a lane of them: one relay at a time; the fence decides who may write. */
import type { FailedDelivery, LaneLease, LaneResult, NewMessage, Redrive } from '../../../ports/outbox.ts'
import type { Tables } from '../tables.ts'

/** As in the databases. */
export const laneCount = 8

export interface StoredMessage extends NewMessage {
  /** Rises with every commit. */
  readonly position: number
  readonly lane: number
  readonly createdAtMs: number
}

/** A message aside. Never changed in place, only replaced. */
export interface Aside {
  readonly message: StoredMessage
  /** Later messages of its aggregate wait for it. */
  readonly blocks: boolean
  readonly suspect: boolean
  readonly attempts: number
  readonly crashes: number
  /** Absent while it stands behind another message of its aggregate, or is parked. */
  readonly dueAtMs: number | undefined
  readonly parkedAtMs: number | undefined
  readonly cause: string
  readonly history: readonly FailedDelivery[]
}

export interface Lane {
  readonly lane: number
  fence: number
  leaseId: string | undefined
  lockedUntilMs: number | undefined
  /** -1: never. */
  leasedAtMs: number
  /** Relays in a row that died on it. */
  crashes: number
  /** A suspect is being delivered: its crash is counted already. */
  probing: boolean
  /** Messages after the cursor, in their order. */
  fresh: StoredMessage[]
  readonly aside: Map<number, Aside>
}

export interface OutboxTables {
  readonly lanes: readonly Lane[]
  /** All of them, by position, until they are pruned. */
  readonly messages: Map<number, StoredMessage>
  readonly downstreamIds: Map<number, string>
  readonly redrives: Map<number, readonly Redrive[]>
  add(message: Omit<StoredMessage, 'position'>): void
  /** Another payload for the message of this position, wherever it stands. */
  replace(message: StoredMessage): void
}

export function emptyOutbox(): OutboxTables {
  const lanes = Array.from({ length: laneCount }, (_, lane) => emptyLane(lane))
  const messages = new Map<number, StoredMessage>()
  let last = 0
  return {
    lanes,
    messages,
    downstreamIds: new Map(),
    redrives: new Map(),
    add(given) {
      const message = { ...given, position: (last += 1) }
      messages.set(message.position, message)
      lanes[message.lane]?.fresh.push(message)
    },
    replace(message) {
      const { position } = message
      messages.set(position, message)
      const lane = lanes[message.lane]
      if (lane === undefined) return
      lane.fresh = lane.fresh.map(each => (each.position === position ? message : each))
      const aside = lane.aside.get(position)
      if (aside !== undefined) lane.aside.set(position, { ...aside, message })
    },
  }
}

function emptyLane(lane: number): Lane {
  const free = { fence: 0, leaseId: undefined, lockedUntilMs: undefined, leasedAtMs: -1, crashes: 0, probing: false }
  return { lane, ...free, fresh: [], aside: new Map() }
}

/** In the order of their positions. */
export function asideOf({ aside }: Lane): readonly Aside[] {
  return [...aside.values()].sort((left, right) => left.message.position - right.message.position)
}

/** Messages aside that may be delivered now: due, and nothing of their aggregate before them is parked or waits. */
export function deliverable(lane: Lane, nowMs: number): readonly Aside[] {
  const blocked = new Set<string>()
  return asideOf(lane).filter(one => {
    const { aggregate } = one.message
    const isDue = one.parkedAtMs === undefined && one.dueAtMs !== undefined && one.dueAtMs <= nowMs
    const isFree = aggregate === undefined || !blocked.has(aggregate)
    if (aggregate !== undefined && one.blocks && !isDue) blocked.add(aggregate)
    return isDue && isFree
  })
}

export function leaseLane(
  { outbox, now }: Tables,
  { leaseId, leaseMs }: { leaseId: string; leaseMs: number },
): LaneLease | undefined {
  const nowMs = now()
  const [lane] = outbox.lanes
    .filter(({ lockedUntilMs }) => lockedUntilMs === undefined || lockedUntilMs <= nowMs)
    .filter(each => each.fresh.length > 0 || deliverable(each, nowMs).length > 0)
    .toSorted((left, right) => left.leasedAtMs - right.leasedAtMs || left.lane - right.lane)
  if (lane === undefined) return undefined
  // A lease that ran out means that its relay died; when it was delivering a suspect, that one has been counted already.
  if (lane.lockedUntilMs !== undefined && !lane.probing) lane.crashes += 1
  lane.fence += 1
  lane.leaseId = leaseId
  lane.leasedAtMs = nowMs
  lane.lockedUntilMs = nowMs + leaseMs
  lane.probing = false
  return { lane: lane.lane, fence: lane.fence, leaseId }
}

/** The lane, if the lease still holds it. */
export function leasedLane({ outbox }: Tables, { lane: number, fence, leaseId }: LaneLease): Lane | undefined {
  const lane = outbox.lanes[number]
  return lane?.fence === fence && lane.leaseId === leaseId ? lane : undefined
}

export function renewLane(tables: Tables, lease: LaneLease, leaseMs: number): LaneResult {
  const lane = leasedLane(tables, lease)
  if (lane === undefined) return 'lease-lost'
  lane.lockedUntilMs = tables.now() + leaseMs
  return 'written'
}

export function releaseLane(tables: Tables, lease: LaneLease): LaneResult {
  const lane = leasedLane(tables, lease)
  if (lane === undefined) return 'lease-lost'
  lane.lockedUntilMs = undefined
  lane.leaseId = undefined
  lane.crashes = 0
  lane.probing = false
  return 'written'
}
