/**
 * Calls of one kind, gathered into batches without a timer: what arrives while a batch is under way forms the next one, and
 * a call that finds nothing under way leaves at the end of this turn of the event loop.
 *
 * Calls with one key never share a batch. Where the kind allows it, those that come while the first of them still waits join
 * it, and its answer is theirs: a thousand callers of one key are one call. They were never sent, so they are never in doubt.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import {
  type Call,
  type CallQueue,
  callQueue,
  close,
  neverSent,
  type QueueLimits,
  type QueueOptions,
  refuseAll,
  refuseLate,
  stand,
  standAgain,
  takeBatch,
} from './call-queue.ts'

export type GatherLimits = QueueLimits

export interface GatherOptions<Item, Result> extends QueueOptions<Item> {
  /** Whether the answer to `sent` is one to `joined`, too, which came before it was sent. Absent: never. */
  readonly mayShare?: ((result: Result, sent: Item, joined: Item) => boolean) | undefined
  /**
   * Sends one batch and resolves when the next may go. The result of a member may be a promise that is still open then. A
   * rejection is the answer to every member.
   */
  readonly send: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>
}

/** How often those who wait are looked at: a twentieth of the longest wait is soon enough, and rare enough for thousands. */
const looksPerWait = 20

export function gather<Item, Result>(options: GatherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { mayShare, send, limits, clock } = options
  const queue = callQueue<Item, Result>(options)
  const answers = answersOf(queue, mayShare, start)
  let underWay = false
  let watched = false

  function flush(): void {
    // Those who can be sent now are sent, however long this process kept them waiting.
    const batch = takeBatch(queue)
    refuseLate(queue)
    if (batch.length === 0) {
      underWay = false
      return
    }
    for (const call of batch) if (call.behind !== undefined) answers.begin(call, call.behind)
    // Called in a promise, so that a sender that throws rejects like one that fails.
    Promise.resolve(batch.map(({ item }) => item))
      .then(send)
      .then(
        results => batch.forEach((call, index) => answers.resolveBy(call, results, index)),
        (error: unknown) => batch.forEach(call => answers.refuse(call, error)),
      )
      .finally(() => setImmediate(flush))
  }

  function start(): void {
    if (underWay) return watch()
    underWay = true
    setImmediate(flush)
  }

  /** A batch that is not answered holds up those who wait for the next: they hear of it in time. */
  function watch(): void {
    if (watched) return
    watched = true
    clock.after(limits.waitMsMax / looksPerWait, () => {
      watched = false
      refuseLate(queue)
      if (queue.waiting.size > 0 || queue.leading.size > 0) watch()
    })
  }

  return item =>
    new Promise((resolve, reject) => {
      const refused = stand(queue, { item, sinceMs: clock.monotonicMs(), resolve, reject, behind: undefined })
      if (refused !== undefined) return reject(refused)
      start()
    })
}

interface Answers<Item, Result> {
  /** The call is being sent, and `others` are behind it. */
  begin(call: Call<Item, Result>, others: readonly Call<Item, Result>[]): void
  resolveBy(call: Call<Item, Result>, results: readonly (Result | Promise<Result>)[], index: number): unknown
  refuse(call: Call<Item, Result>, error: unknown): void
}

/** `start`: somebody waits again. */
function answersOf<Item, Result>(
  queue: CallQueue<Item, Result>,
  mayShare: GatherOptions<Item, Result>['mayShare'],
  start: () => void,
): Answers<Item, Result> {
  type Member = Call<Item, Result>

  function settle(call: Member, result: Result): void {
    close(queue, call)
    call.resolve(result)
    if (call.behind === undefined) return
    const apart: Member[] = []
    for (const other of sharersOf(queue, call)) {
      if (mayShare?.(result, call.item, other.item) !== true) apart.push(other)
      else {
        queue.behind -= 1
        other.resolve(result)
      }
    }
    if (apart.length === 0) return
    standAgain(queue, apart)
    start()
  }

  function refuse(call: Member, error: unknown): void {
    close(queue, call)
    call.reject(error)
    if (call.behind === undefined) return
    const others = sharersOf(queue, call)
    queue.behind -= others.length
    refuseAll(others, neverSent(error))
  }

  return {
    refuse,
    begin(call, others) {
      if (mayShare !== undefined) return void queue.leading.add(call)
      call.behind = undefined
      standAgain(queue, others)
    },
    resolveBy(call, results, index) {
      if (index >= results.length) {
        return refuse(call, new LatchkeyError('invariant', 'a batch has fewer results than members'))
      }
      // Within the bounds that were just compared.
      const result = results[index] as Result | Promise<Result>
      if (!(result instanceof Promise)) return settle(call, result)
      // A member that went on alone is open until its own answer.
      return result.then(
        value => settle(call, value),
        (error: unknown) => refuse(call, error),
      )
    },
  }
}

function sharersOf<Item, Result>(
  queue: CallQueue<Item, Result>,
  call: Call<Item, Result>,
): readonly Call<Item, Result>[] {
  const others = call.behind ?? []
  call.behind = undefined
  queue.leading.delete(call)
  return others
}
