/**
 * A stream of messages of all partitions. It cannot pause one of them: a message whose partition is busy is waited for before the next is read, and what is
 * not read stays with the client.
 */
import { sleep } from '../../../ports/clock.ts'
import { type Consuming, openRoom } from '../../consuming.ts'
import { type GivenEnvelopeOptions, messageOf } from '../../envelope.ts'
import type { Receiver } from '../../receiver.ts'
import { envelopeOf } from '../envelope.ts'
import type { PlatformaticBytes, PlatformaticConsumer, PlatformaticMessage, PlatformaticStream } from './driver.ts'

export interface Reading {
  readonly from: PlatformaticConsumer
  readonly topics: readonly string[]
  readonly concurrency: number
  readonly consuming: Consuming
  readonly receiver: Receiver
  readonly envelope: GivenEnvelopeOptions
}

/** What is under way, by topic and partition. */
interface Lanes {
  isBusy(lane: string): boolean
  isFull(): boolean
  begin(lane: string, run: Promise<void>): void
  /** Resolves when one has ended, or `stop` was called. */
  next(): Promise<void>
}

/** After a failure of the stream, and of a delivery that has no result. */
const againAfterMs = 1_000

/** Where the group has committed nothing, at the beginning: a message that came before its first consumer is not skipped. */
export function openStream(from: PlatformaticConsumer, topics: readonly string[]): Promise<PlatformaticStream> {
  return from.consume({ topics: [...topics], autocommit: false, mode: 'committed', fallbackMode: 'earliest' })
}

export async function readAgainAndAgain(reading: Reading, first: PlatformaticStream): Promise<void> {
  const { from, topics, consuming, receiver } = reading
  const { clock, telemetry, operation } = receiver
  const lanes = openLanes(reading)
  let stream: PlatformaticStream | undefined = first
  while (!consuming.stopping.aborted) {
    try {
      stream ??= await openStream(from, topics)
      await read(reading, lanes, stream)
    } catch (error) {
      telemetry.report('reading from Kafka failed; it will be retried', { operation, error })
    }
    await stream?.close().catch(() => undefined)
    stream = undefined
    if (!consuming.stopping.aborted) await sleep(clock, againAfterMs, consuming.stopping)
  }
}

function openLanes({ concurrency, consuming }: Reading): Lanes {
  const busy = new Set<string>()
  const room = openRoom()
  consuming.stopping.addEventListener('abort', room.made)
  return {
    isBusy: lane => busy.has(lane),
    isFull: () => busy.size >= concurrency,
    begin(lane, run) {
      busy.add(lane)
      void run.finally(() => {
        busy.delete(lane)
        room.made()
      })
    },
    next: room.next,
  }
}

/** Until the stream ends, or `stop` was called. */
async function read(reading: Reading, lanes: Lanes, stream: PlatformaticStream): Promise<void> {
  const { consuming, receiver } = reading
  const { stopping } = consuming
  const messages = stream[Symbol.asyncIterator]()
  while (!stopping.aborted) {
    const next = await unlessStopped(messages.next(), stopping)
    if (next === undefined || next.done === true) return
    const message: PlatformaticMessage = next.value
    const lane = `${message.topic}/${message.partition}`
    while (lanes.isBusy(lane) && !stopping.aborted) await lanes.next()
    if (consuming.pauseMs() > 0) await sleep(receiver.clock, consuming.pauseMs(), stopping)
    if (stopping.aborted) return
    lanes.begin(lane, deliverUntilSettled(reading, message))
    while (lanes.isFull() && !stopping.aborted) await lanes.next()
  }
}

/** Leaves nothing behind at the signal, which lives as long as the consumer. */
function unlessStopped<T>(asked: Promise<T>, stopping: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined)
    stopping.addEventListener('abort', stop, { once: true })
    asked.then(resolve, reject).finally(() => stopping.removeEventListener('abort', stop))
  })
}

/** In its place, so that its successors keep their order. */
async function deliverUntilSettled(reading: Reading, message: PlatformaticMessage): Promise<void> {
  const { consuming, receiver } = reading
  while (!consuming.stopping.aborted) {
    const waitMs = await deliver(reading, message)
    if (waitMs === 0) return
    await sleep(receiver.clock, waitMs, consuming.stopping)
  }
}

/** After how long it is to be delivered again. Zero: it has ended, whether or not that could be committed. */
async function deliver({ consuming, envelope }: Reading, message: PlatformaticMessage): Promise<number> {
  const { topic, partition, offset, value, headers } = message
  const record = { offset: String(offset), value: bytesOf(value), headers: Object.fromEntries(textsOf(headers)) }
  let waitMs = againAfterMs
  await consuming.takeAlone({
    message: messageOf(envelopeOf({ topic, partition }, record), envelope),
    // The client beats for its group by itself.
    renew: () => undefined,
    /** After the outcome, or the parked copy, is durable. */
    async settle(result) {
      waitMs = result.kind === 'retry' ? result.afterMs : 0
      // One that fails is covered by the next of its partition. If there is none, the message comes again, and its row is found.
      if (waitMs === 0) await message.commit()
    },
    abandon: () => undefined,
  })
  return waitMs
}

function bytesOf(value: PlatformaticMessage['value']): Uint8Array | null {
  return typeof value === 'string' ? Buffer.from(value) : (value ?? null)
}

function textsOf(headers: PlatformaticMessage['headers']): [string, string][] {
  const textOf = (bytes: PlatformaticBytes) => (typeof bytes === 'string' ? bytes : new TextDecoder().decode(bytes))
  return [...headers].flatMap(([name, value]) => (value === null ? [] : [[textOf(name), textOf(value)]]))
}
