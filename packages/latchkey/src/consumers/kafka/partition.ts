/**
 * The messages of one partition, one after the other. Kafka has one position for each partition, not an acknowledgement for each message: a message that is to
 * be retried holds up its successors, which keeps their order, and one that never succeeds is parked.
 */
import { sleep } from '../../ports/clock.ts'
import type { InboxResult } from '../../inbox/index.ts'
import type { Consuming } from '../consuming.ts'
import { type GivenEnvelopeOptions, messageOf } from '../envelope.ts'
import type { Receiver } from '../receiver.ts'
import type { KafkaBatchPayload, KafkaConsumer, KafkaMessage } from './driver.ts'
import { envelopeOf } from './envelope.ts'

export interface Partitions {
  readonly from: KafkaConsumer
  readonly consuming: Consuming
  readonly receiver: Receiver
  readonly envelope: GivenEnvelopeOptions
}

/** What follows a delivery: its successor, or itself once more. */
type Turn = { readonly kind: 'next' } | { readonly kind: 'again'; readonly afterMs: number }

/** A longer wait pauses the partition, so that others get its place. The client may take seconds until it reads a paused one again. */
const inPlaceMsMax = 2_000
/** Between heartbeats of a wait in place. The client sends them at most as often as its configuration says. */
const beatEveryMs = 500
/** After a commit that failed. */
const againAfterMs = 1_000

/**
 * Never rejects for a message: the client would deliver it again at once, for ever. What rejects is the heartbeat, which is how the client learns that it must
 * join its group again.
 */
export async function runBatch(partitions: Partitions, payload: KafkaBatchPayload): Promise<void> {
  for (const message of payload.batch.messages) {
    let turn: Turn
    do {
      if (mustLeave(partitions, payload)) return
      turn = await deliver(partitions, payload, message)
      if (turn.kind === 'again' && turn.afterMs > inPlaceMsMax) return pauseFor(partitions, payload, turn.afterMs)
      if (turn.kind === 'again') await waitInPlace(partitions, payload, turn.afterMs)
    } while (turn.kind === 'again')
    // A batch may take longer than the group waits for its member.
    await payload.heartbeat()
  }
}

function mustLeave(partitions: Partitions, payload: KafkaBatchPayload): boolean {
  const { consuming } = partitions
  if (!payload.isRunning() || payload.isStale()) return true
  if (consuming.stopping.aborted) {
    // A client that continues until it is disconnected would deliver the same batch again and again.
    payload.pause()
    return true
  }
  const pauseMs = consuming.pauseMs()
  if (pauseMs > 0) pauseFor(partitions, payload, pauseMs)
  return pauseMs > 0
}

async function deliver(
  { from, consuming, envelope }: Partitions,
  { batch, heartbeat, resolveOffset }: KafkaBatchPayload,
  message: KafkaMessage,
): Promise<Turn> {
  const { topic, partition } = batch
  let turn: Turn = { kind: 'again', afterMs: againAfterMs }
  await consuming.takeAlone({
    message: messageOf(envelopeOf(batch, message), envelope),
    renew: heartbeat,
    /** After the outcome, or the parked copy, is durable. */
    async settle(result: InboxResult) {
      if (result.kind === 'retry') {
        turn = { kind: 'again', afterMs: result.afterMs }
        return
      }
      await from.commitOffsets([{ topic, partition, offset: String(BigInt(message.offset) + 1n) }])
      resolveOffset(message.offset)
      turn = { kind: 'next' }
    },
    // It comes again, and its row is found.
    abandon: () => undefined,
  })
  return turn
}

async function waitInPlace(
  { consuming: { stopping }, receiver }: Partitions,
  { heartbeat }: KafkaBatchPayload,
  ms: number,
): Promise<void> {
  for (let leftMs = ms; leftMs > 0 && !stopping.aborted; leftMs -= beatEveryMs) {
    await sleep(receiver.clock, Math.min(leftMs, beatEveryMs), stopping)
    await heartbeat()
  }
}

function pauseFor({ consuming, receiver }: Partitions, { pause }: KafkaBatchPayload, ms: number): void {
  const { clock, telemetry, operation } = receiver
  const resume = pause()
  const waited = async () => {
    await sleep(clock, ms, consuming.stopping)
    if (!consuming.stopping.aborted) resume()
  }
  waited().catch((error: unknown) => telemetry.report('a partition was not resumed', { operation, error }))
}
