/**
 * The relay takes a lane, delivers its messages, settles them, and continues with the next batch. After a crash between a delivery and its
 * settlement the message is delivered again, with the same dedup id.
 */
import type { Target } from '../ports/target.ts'
import { systemClock, type Clock } from '../ports/clock.ts'
import { type Batch, type DeliveryEnd, isAllDelivered, type LaneLease, type Outbox } from '../ports/outbox.ts'
import { consoleTelemetry } from '../ports/console-telemetry.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { deliverBatch } from './delivery.ts'
import { type HeldLane, holdLane } from './hold-lane.ts'
import { checkedPolicy, type RelayPolicy } from './policy.ts'
import { openPreparations } from './prepare.ts'
import { processName } from './process-name.ts'

export interface RelayOptions extends Partial<RelayPolicy> {
  readonly outbox: Outbox<unknown>
  /** Where messages go, by topic; `*` is for all other topics. A message without a target fails and is tried again. */
  readonly targets: Readonly<Record<string, Target>>
  readonly clock?: Clock
  /** Default: reports go to `console.warn`, each cause once a minute. */
  readonly telemetry?: Telemetry
}

export interface RelayCounts {
  readonly delivered: number
  /** Will be tried again. */
  readonly failed: number
  readonly parked: number
  /** Not tried, because an earlier message of their aggregate is not delivered. */
  readonly held: number
}

export type RelayTurn =
  /** No lane has anything to do: try again later. */
  | { readonly kind: 'idle' }
  /** `more`: the lane was released with work left, so that other lanes get their turn. */
  | ({ readonly kind: 'worked'; readonly lane: number; readonly more: boolean } & RelayCounts)
  /** Another relay has the lane now and delivers what this one had not settled. */
  | ({ readonly kind: 'lease-lost'; readonly lane: number } & RelayCounts)

export interface Relay {
  /** Serves one lane for a few batches. Rejects when the store failed; the lane is then free again when its lease expires. */
  relayOnce(signal?: AbortSignal): Promise<RelayTurn>
}

/**
 * After this many batches the lane is released and the next one is served: with fewer relays than lanes none starves. Where deliveries are
 * quick it is held for longer, because each lease costs a commit.
 */
const batchesPerTurn = { slow: 10, quick: 25 }
const quickTurnMs = 1_000

export function createRelay(options: RelayOptions): Relay {
  const policy = checkedPolicy(options)
  const { outbox, targets, clock = systemClock, telemetry = consoleTelemetry({ clock }) } = options
  const preparations = openPreparations({ policy, telemetry })
  const context = { targets, clock, policy, preparations }

  async function work(held: HeldLane, signal: AbortSignal | undefined): Promise<RelayTurn> {
    const { lease } = held
    let counts: RelayCounts = { delivered: 0, failed: 0, parked: 0, held: 0 }
    const startedAtMs = clock.monotonicMs()
    const isEnough = (batches: number) => {
      const spentMs = clock.monotonicMs() - startedAtMs
      return batches >= batchesPerTurn[spentMs < quickTurnMs ? 'quick' : 'slow'] || spentMs >= policy.leaseMs
    }
    let ahead: Batch | undefined
    for (let batches = 1; ; batches += 1) {
      const batch = ahead ?? (await outbox.next(lease, { limit: policy.batch }))
      if (batch === 'lease-lost') return { kind: 'lease-lost', lane: lease.lane, ...counts }
      const ends = await deliverBatch(context, batch, held.signal)
      const release = !batch.more || isEnough(batches) || signal?.aborted === true
      const then = release ? ({ kind: 'release' } as const) : ({ kind: 'keep', leaseMs: policy.leaseMs } as const)
      const sentAtMs = clock.monotonicMs()
      // Even when the lease seems lost: the store decides, and what was delivered need not be delivered again.
      const settling = outbox.settle(lease, { batch, ends, then })
      const reading = release ? undefined : readAhead(lease, batch, ends)
      if ((await settling) === 'lease-lost') return { kind: 'lease-lost', lane: lease.lane, ...counts }
      held.renewed(sentAtMs)
      counts = add(counts, batch, ends)
      reportParked(telemetry, batch, ends)
      if (release) return { kind: 'worked', lane: lease.lane, more: batch.more, ...counts }
      ahead = await reading
    }
  }

  /** Reads the next batch while this one is settled, if all of it was delivered: a failure would block later messages. Never rejects. */
  async function readAhead(lease: LaneLease, batch: Batch, ends: readonly DeliveryEnd[]): Promise<Batch | undefined> {
    if (batch.through === undefined || !isAllDelivered(batch, ends)) return undefined
    return outbox.ahead?.(lease, { limit: policy.batch, after: batch.through }).catch(() => undefined)
  }

  return {
    async relayOnce(signal) {
      for (const target of Object.values(targets)) preparations.begin(target)
      // The fence tells leases apart; the name is for people.
      const leaseId = processName(clock)
      const askedAtMs = clock.monotonicMs()
      const lease = await outbox.leaseLane({ leaseId, leaseMs: policy.leaseMs })
      if (lease === undefined) return { kind: 'idle' }
      const held = holdLane({ outbox, clock, lease, askedAtMs, leaseMs: policy.leaseMs, signal })
      try {
        return await work(held, signal)
      } catch (error) {
        release(outbox, lease)
        throw error
      } finally {
        held.stop()
      }
    },
  }
}

/** Best effort: otherwise the next relay waits until the lease expires. */
function release(outbox: Outbox<unknown>, lease: LaneLease): void {
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

function reportParked(telemetry: Telemetry, batch: Batch, ends: readonly DeliveryEnd[]): void {
  for (const end of ends) {
    if (end.kind !== 'failed' || end.next.kind !== 'park') continue
    const topic = batch.messages.find(message => message.position === end.position)?.topic ?? ''
    try {
      telemetry.count('parked', { detail: topic })
      telemetry.report('an outbox message was parked', { detail: `${topic} ${end.position}: ${end.error}` })
    } catch {
      // Telemetry that throws must not stop the relay.
    }
  }
}
