/** What consumers of all brokers share: deliveries under way, the pause while the store is down, marked messages, and the end. */
import { setMaxListeners } from 'node:events'
import type { InboxMessage, InboxResult } from '../inbox/index.ts'
import { type Clock, sleep } from '../ports/clock.ts'
import { faultPoint } from '../ports/telemetry.ts'
import type { Receiver } from './receiver.ts'

/** One delivery. */
export interface Delivery {
  readonly message: InboxMessage
  /** Renews the broker's lease. */
  renew(): unknown
  /** Tells the broker. What it rejects with is reported. */
  settle(result: InboxResult): unknown
  /** It was not settled. Sees to it that the message comes again; the row decides then. */
  abandon(): unknown
}

export interface Consuming {
  /**
   * Begins a delivery. Resolves as soon as there is room for another one, or `stop` was called. A message whose outcome is durable makes room: the next
   * one need not wait until the broker has confirmed its acknowledgement. After `stop` none is begun: it was not acknowledged, and comes again.
   */
  take(delivery: Delivery): Promise<void>
  /** A delivery whose successor must wait for it. Resolves when it was settled or abandoned, or not begun. */
  takeAlone(delivery: Delivery): Promise<void>
  /** Aborted when `stop` begins. */
  readonly stopping: AbortSignal
  /** Resolves when nothing is under way any more, or `stop` has waited long enough. */
  readonly ended: Promise<void>
  /** The store is down: take nothing for so long. Zero: it is not. */
  pauseMs(): number
  stop(options?: StopOptions): Promise<{ drained: boolean }>
}

export interface StopOptions {
  /** For what is under way. Default 10 s. What has not ended by then comes again. */
  readonly timeoutMs?: number
}

const drainMs = 10_000
/** For what a client does to end, once nothing is under way: one whose broker does not answer may wait for ever. */
export const leaveMsMax = 5_000
/** A broker that confirms nothing any more must not collect messages here. */
const unsettledMax = 64
/** How often a consumer looks for messages that operators have marked. */
const redriveEveryMs = 5_000

export function startConsuming(receiver: Receiver, concurrency: number): Consuming {
  const { clock, telemetry, operation } = receiver
  const stopping = new AbortController()
  // Each partition that is paused waits for it. Beyond ten, Node would warn of a leak.
  setMaxListeners(0, stopping.signal)
  const underWay = new Set<Promise<void>>()
  let running = 0
  const room = openRoom()
  stopping.signal.addEventListener('abort', room.made)
  const isFull = () => running >= concurrency || underWay.size >= concurrency + unsettledMax
  let end = () => {}
  const ended = new Promise<void>(resolve => (end = resolve))
  let pausedUntilMs = 0

  async function run({ message, renew, settle, abandon }: Delivery): Promise<void> {
    try {
      faultPoint('consumer:received')
      const result = await receive(message, renew)
      if (result.kind === 'retry' && result.cause === 'store-down') pausedUntilMs = clock.monotonicMs() + result.afterMs
      room.made()
      faultPoint('consumer:before-settle')
      await settle(result)
      faultPoint('consumer:after-settle')
    } catch (error) {
      telemetry.report('a delivery was not settled; the message will be delivered again', { operation, error })
      await abandon()
    }
  }

  async function receive(message: InboxMessage, renew: () => unknown): Promise<InboxResult> {
    running += 1
    try {
      return await receiver.receive(message, renew)
    } finally {
      running -= 1
    }
  }

  function begin(delivery: Delivery): Promise<void> {
    // `stop` waits for those that it finds under way. A broker may still hand over one that it had sent before.
    if (stopping.signal.aborted) return Promise.resolve()
    const settled = run(delivery).finally(() => {
      underWay.delete(settled)
      room.made()
    })
    underWay.add(settled)
    return settled
  }

  const redriving = redriveUntil(stopping.signal, receiver)
  return {
    stopping: stopping.signal,
    ended,
    pauseMs: () => Math.max(0, pausedUntilMs - clock.monotonicMs()),
    async take(delivery) {
      void begin(delivery)
      while (isFull() && !stopping.signal.aborted) await room.next()
    },
    takeAlone: begin,
    async stop({ timeoutMs = drainMs } = {}) {
      stopping.abort()
      const drained = await endsWithin(clock, timeoutMs, Promise.all([...underWay, redriving]))
      end()
      return { drained }
    },
  }
}

async function redriveUntil(stopping: AbortSignal, receiver: Receiver): Promise<void> {
  const { clock, telemetry, operation } = receiver
  while (!stopping.aborted) {
    const isMore = await receiver.redriveOne().catch((error: unknown) => {
      telemetry.report('marked messages were not run', { operation, error })
      return false
    })
    if (!isMore) await sleep(clock, redriveEveryMs, stopping)
  }
}

/** Whether it ended in time. What is waited for must not reject later than that. */
export async function endsWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const waited = new AbortController()
  const ended = await Promise.race([work.then(() => true), sleep(clock, ms, waited.signal).then(() => false)])
  waited.abort()
  return ended
}

/** Not a race of promises: each race would leave something behind at the one of them that lives as long as the consumer. */
export function openRoom(): { next(): Promise<void>; made(): void } {
  const waiting = new Set<() => void>()
  return {
    next: () => new Promise<void>(resolve => waiting.add(resolve)),
    made() {
      for (const resume of waiting) resume()
      waiting.clear()
    },
  }
}
