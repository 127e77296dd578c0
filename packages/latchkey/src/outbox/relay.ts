/**
 * The relay: takes a lane, delivers its messages, settles them, and goes on. A crash between a delivery and its settlement
 * means that the message is delivered again, with the same dedup id.
 */
import type { Target } from '../ports/broker.ts'
import { systemClock, type Clock } from '../ports/clock.ts'
import { type Batch, type DeliveryEnd, isAllDelivered, type LaneLease, type Outbox } from '../ports/outbox.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { silentTelemetry } from '../ports/telemetry.ts'
import { deliverBatch } from './delivery.ts'
import { keepLane, type KeptLane } from './lane-keeper.ts'
import { checkedPolicy, type RelayPolicy } from './policy.ts'

export interface RelayOptions extends Partial<RelayPolicy> {
  readonly outbox: Outbox<unknown>
  /** Where messages go, by topic; `*` is for all other topics. A message without a target fails and is tried again. */
  readonly targets: Readonly<Record<string, Target>>
  readonly clock?: Clock
  readonly telemetry?: Telemetry
  /** Called before and after every delivery: where a test may kill the process. */
  readonly faultPoint?: (name: 'relay:before-deliver' | 'relay:after-deliver') => void
}

export interface RelayCounts {
  readonly delivered: number
  /** To be tried again. */
  readonly failed: number
  readonly parked: number
  /** Not tried, because something of their aggregate stands before them. */
  readonly held: number
}

export type RelayTurn =
  /** No lane has anything to do: look again later. */
  | { readonly kind: 'idle' }
  /** `more`: the lane was given back with work left, so that others get their turn. */
  | ({ readonly kind: 'worked'; readonly lane: number; readonly more: boolean } & RelayCounts)
  /** Another relay has the lane now, and delivers what this one had in hand. */
  | ({ readonly kind: 'lease-lost'; readonly lane: number } & RelayCounts)

export interface Relay {
  /** One lane, a few batches. Rejects when the store failed; the lane is then free again when its lease runs out. */
  relayOnce(signal?: AbortSignal): Promise<RelayTurn>
}

/**
 * Then the lane is given back and the next one is served: with fewer relays than lanes none of them starves. Where deliveries
 * are quick it is kept for longer, because a lease is a commit, too.
 */
const batchesPerTurn = { slow: 10, quick: 25 }
const quickTurnMs = 1_000

export function createRelay(options: RelayOptions): Relay {
  const policy = checkedPolicy(options)
  const { outbox, targets, clock = systemClock, telemetry = silentTelemetry, faultPoint = () => {} } = options
  const parts = { targets, clock, policy, faultPoint }

  async function work(kept: KeptLane, signal: AbortSignal | undefined): Promise<RelayTurn> {
    const { lease } = kept
    let counts: RelayCounts = { delivered: 0, failed: 0, parked: 0, held: 0 }
    const begunAtMs = clock.monotonicMs()
    const isEnough = (batches: number) => {
      const spentMs = clock.monotonicMs() - begunAtMs
      return batches >= batchesPerTurn[spentMs < quickTurnMs ? 'quick' : 'slow'] || spentMs >= policy.leaseMs
    }
    let ahead: Batch | undefined
    for (let batches = 1; ; batches += 1) {
      const batch = ahead ?? (await outbox.next(lease, { limit: policy.batch }))
      if (batch === 'lease-lost') return { kind: 'lease-lost', lane: lease.lane, ...counts }
      const ends = await deliverBatch(parts, batch, kept.signal)
      const release = !batch.more || isEnough(batches) || signal?.aborted === true
      const then = release ? ({ kind: 'release' } as const) : ({ kind: 'keep', leaseMs: policy.leaseMs } as const)
      const startedAtMs = clock.monotonicMs()
      // Also when the lease seems lost: the store knows, and what was delivered need not be delivered again.
      const settling = outbox.settle(lease, { batch, ends, then })
      const reading = release ? undefined : readAhead(lease, batch, ends)
      if ((await settling) === 'lease-lost') return { kind: 'lease-lost', lane: lease.lane, ...counts }
      kept.renewed(startedAtMs)
      counts = add(counts, batch, ends)
      tellParked(telemetry, batch, ends)
      if (release) return { kind: 'worked', lane: lease.lane, more: batch.more, ...counts }
      ahead = await reading
    }
  }

  /** While the batch is settled, if all of it was delivered: what failed would block others. Never rejects. */
  async function readAhead(lease: LaneLease, batch: Batch, ends: readonly DeliveryEnd[]): Promise<Batch | undefined> {
    if (batch.through === undefined || !isAllDelivered(batch, ends)) return undefined
    return outbox.ahead?.(lease, { limit: policy.batch, after: batch.through }).catch(() => undefined)
  }

  return {
    async relayOnce(signal) {
      const leaseId = clock.randomId()
      const askedAtMs = clock.monotonicMs()
      const lease = await outbox.leaseLane({ leaseId, leaseMs: policy.leaseMs })
      if (lease === undefined) return { kind: 'idle' }
      const kept = keepLane({ outbox, clock, lease, askedAtMs, leaseMs: policy.leaseMs, signal })
      try {
        return await work(kept, signal)
      } catch (error) {
        giveBack(outbox, lease)
        throw error
      } finally {
        kept.stop()
      }
    },
  }
}

/** As good as it goes: otherwise the next relay waits until the lease runs out. */
function giveBack(outbox: Outbox<unknown>, lease: LaneLease): void {
  outbox.releaseLane(lease).catch(() => undefined)
}

function add(counts: RelayCounts, batch: Batch, ends: readonly DeliveryEnd[]): RelayCounts {
  const failed = ends.filter(end => end.kind === 'failed')
  const parked = failed.filter(end => end.next.kind === 'park').length
  return {
    delivered: counts.delivered + ends.length - failed.length,
    failed: counts.failed + failed.length - parked,
    parked: counts.parked + parked,
    held: counts.held + batch.behind.length + batch.messages.length - ends.length,
  }
}

function tellParked(telemetry: Telemetry, batch: Batch, ends: readonly DeliveryEnd[]): void {
  for (const end of ends) {
    if (end.kind !== 'failed' || end.next.kind !== 'park') continue
    const topic = batch.messages.find(message => message.position === end.position)?.topic ?? ''
    try {
      telemetry.count('parked', { detail: topic })
      telemetry.report('an outbox message was parked', { detail: `${topic} ${end.position}: ${end.error}` })
    } catch {
      // An observer that throws changes nothing.
    }
  }
}
