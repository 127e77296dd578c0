/**
 * Sends what waits in the queues of several kinds together: one message, one transaction, one flush to disk. No call is
 * delayed to gather company: what arrives while a message is under way leaves with the next one, and what finds none under way leaves at
 * the end of this turn of the event loop.
 */
import type { Clock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import { isLockTimeout, isRefusalOfRows } from '../connection/errors.ts'
import type { Answered, Batch } from '../connection/prepared.ts'
import type { Send, Sent } from '../connection/batch-sender.ts'
import {
  askOf,
  type BatchQueue,
  batchQueue,
  type Call,
  type QueuedCall,
  type QueueOptions,
  refuse,
  sendAlone,
  settle,
  takeCalls,
} from './batch-queue.ts'

/** A kind of call whose calls share a statement. The result of a call may be a promise that is still open. */
export interface CarriedCall<Item, Result> extends QueuedCall<Item, Result> {
  readonly many: (items: readonly Item[]) => Batch
  readonly resultsOf: (items: readonly Item[], answer: Answered) => readonly (Result | Promise<Result>)[]
  /** Called when a batch was refused for one of its rows. */
  readonly refused?: () => void
  /** For a call without company, where there is a cheaper statement than the one for many. */
  readonly one?: (item: Item) => Batch
  /** Undefined: the statement for many has to say. */
  readonly resultOf?: (item: Item, answer: Answered) => Result | Promise<Result> | undefined
}

export interface Carrier {
  /**
   * Opens a queue. What is opened first is also sent first within a message, and answered last. What is sent later must wait for no
   * other process, or two of them could wait for each other.
   */
  carry<Item, Result>(kind: CarriedCall<Item, Result>): (item: Item) => Promise<Result>
}

/** The calls of one kind in one message. */
interface Load {
  readonly batch: Batch
  readonly size: number
  /** When the first of them arrived. */
  readonly sinceMs: number
  settle(answer: Answered): void
  /** Nothing of it was written, because of one of its rows: each call is sent alone, and holds up no other. */
  resend(): void
  refuse(error: unknown): void
}

interface Queue {
  waiting(): number
  /** `isAlone`: nothing else is in the message. */
  load(isAlone: boolean): Load | undefined
}

/** Calls in a message. Above it, both its costs and its wait are shared by many. */
const smallMax = 16

/**
 * As the lock timeout of a batch. A statement for one call has none: while it waits for a lock, its sender is free for others, and takes
 * another connection for them.
 */
const heldMsMax = 50

export function openCarrier(all: readonly Send[], options: QueueOptions): Carrier {
  const queues: Queue[] = []
  /** Those that have no message under way. */
  const senders = [...all]
  /** How many calls are under way. */
  let flying = 0
  let isPlanned = false

  function wake(): void {
    if (isPlanned || senders.length === 0) return
    isPlanned = true
    setImmediate(depart)
  }

  /**
   * A second message leaves beside a small one: a call that is almost alone does not wait for another's commit. Under load there is one at
   * a time, because fewer and larger ones cost less.
   */
  function mayDepart(): boolean {
    return flying < smallMax
  }

  function depart(): void {
    isPlanned = false
    if (!mayDepart()) return
    const send = senders.pop()
    if (send === undefined) return
    const isAlone = queues.reduce((sum, queue) => sum + queue.waiting(), 0) === 1
    const loads = queues.map(queue => queue.load(isAlone)).filter(load => load !== undefined)
    if (loads.length === 0) return void senders.push(send)
    const size = loads.reduce((sum, load) => sum + load.size, 0)
    flying += size
    const observer = options.observed?.observer
    if (observer !== undefined) observer.batch(size, waitedMs(options.clock, loads))
    let isHeldUp = false
    const free = () => {
      senders.push(send)
      flying -= size
      if (queues.some(queue => queue.waiting() > 0)) wake()
    }
    const cancel = options.clock.after(heldMsMax, () => {
      isHeldUp = true
      free()
    })
    void send(loads.map(({ batch }) => batch))
      .then(sent => {
        if (observer !== undefined && sent.some(isLockedOut)) observer.lockTimeout()
        return land(send, loads, sent)
      })
      .then(() => {
        cancel()
        if (!isHeldUp) free()
      })
  }

  return {
    carry(kind) {
      const queue = batchQueue(kind, options, wake)
      queues.push({
        waiting: () => queue.calls.waiting.size,
        load: isAlone => (isAlone ? loneLoad(queue, kind, all) : nextLoad(queue, kind)),
      })
      return askOf(queue)
    },
  }
}

function waitedMs(clock: Clock, loads: readonly Load[]): number {
  return clock.monotonicMs() - loads.reduce((first, { sinceMs }) => Math.min(first, sinceMs), Infinity)
}

function isLockedOut(part: Sent): boolean {
  return part.kind === 'failed' && isLockTimeout(part.error)
}

/** What became of each load. The last comes first: answers that wait to be sent before handlers that wait to begin. */
async function land(send: Send, loads: readonly Load[], sent: readonly Sent[]): Promise<void> {
  for (const [index, load] of [...loads.entries()].toReversed()) {
    const part = sent[index] ?? nothingSent
    if (part.kind === 'answered') load.settle(part.answer)
    else if (!isRefusalOfRows(part.error)) load.refuse(part.error)
    else if (loads.length === 1) load.resend()
    // One of the others may have the row that was refused.
    else await sendApart(send, load)
  }
}

async function sendApart(send: Send, load: Load): Promise<void> {
  await land(send, [load], await send([load.batch]))
}

const nothingSent: Sent = {
  kind: 'failed',
  error: new LatchkeyError('invariant', 'a message has fewer answers than statements'),
}

function nextLoad<Item, Result>(
  queue: BatchQueue<Item, Result>,
  kind: CarriedCall<Item, Result>,
): ReturnType<Queue['load']> {
  const calls = takeCalls(queue, queue.limits.sizeMax)
  return calls.length === 0 ? undefined : loadOfMany(queue, kind, calls)
}

/** The statement for one call waits for a lock as long as it takes, so nothing else may be in its transaction. */
function loneLoad<Item, Result>(
  queue: BatchQueue<Item, Result>,
  kind: CarriedCall<Item, Result>,
  [again]: readonly Send[],
): ReturnType<Queue['load']> {
  const [call] = takeCalls(queue, 1)
  if (call === undefined) return undefined
  const { one, resultOf } = kind
  const load = loadOfMany(queue, kind, [call])
  if (one === undefined || resultOf === undefined) return load
  return {
    ...load,
    batch: one(call.item),
    settle(answer) {
      const result = resultOf(call.item, answer)
      if (result !== undefined) settle(queue, call, result)
      else if (again !== undefined) void sendApart(again, load)
    },
  }
}

function loadOfMany<Item, Result>(
  queue: BatchQueue<Item, Result>,
  kind: CarriedCall<Item, Result>,
  calls: readonly Call<Item, Result>[],
): Load {
  const items = calls.map(({ item }) => item)
  return {
    batch: kind.many(items),
    size: calls.length,
    // There is at least one, and they stand in the order of their arrival.
    sinceMs: calls[0]?.sinceMs ?? 0,
    settle(answer) {
      const results = resultsOf(kind, items, answer)
      calls.forEach((call, index) => {
        if ('error' in results) refuse(queue, call, results.error)
        // There are as many as there are calls.
        else settle(queue, call, results.all[index] as Result | Promise<Result>)
      })
    },
    resend() {
      kind.refused?.()
      for (const call of calls) void sendAlone(queue, call)
    },
    refuse: error => calls.forEach(call => refuse(queue, call, error)),
  }
}

type Results<Result> = { readonly all: readonly (Result | Promise<Result>)[] } | { readonly error: unknown }

/** An answer that cannot be read must not hold up the messages after it. */
function resultsOf<Item, Result>(
  kind: CarriedCall<Item, Result>,
  items: readonly Item[],
  answer: Answered,
): Results<Result> {
  try {
    const all = kind.resultsOf(items, answer)
    if (all.length === items.length) return { all }
    return { error: new LatchkeyError('invariant', 'a batch has fewer results than members') }
  } catch (error) {
    return { error }
  }
}
