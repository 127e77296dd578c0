/**
 * Calls of one kind, gathered into batches without a timer: what arrives while a batch is under way forms the next one, and
 * a call that finds nothing under way leaves at the end of this turn of the event loop.
 */
import type { Clock } from '../../ports/clock.ts'
import { LatchkeyError } from '../../ports/errors.ts'

export interface GatherLimits {
  /** The most calls in one batch. */
  readonly sizeMax: number
  /** The most calls that are open, from their arrival to their answer; the next one is refused at once. */
  readonly openMax: number
  /** A call that has waited longer is dropped before it is sent: nobody waits for its answer any more. */
  readonly waitMsMax: number
}

export interface GatherOptions<Item, Result> {
  /** What is refused or dropped, in messages. */
  readonly name: string
  /** Two calls with the same key never share a batch: the second goes with the next. */
  readonly keyOf: (item: Item) => string
  /**
   * Sends one batch and resolves when the next may go. The result of a member may be a promise that is still open then. A
   * rejection is the answer to every member.
   */
  readonly send: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>
  readonly limits: GatherLimits
  readonly clock: Clock
}

interface Waiting<Item, Result> {
  readonly item: Item
  readonly sinceMs: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export function gather<Item, Result>(options: GatherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { name, send, limits, clock } = options
  let waiting: Waiting<Item, Result>[] = []
  let open = 0
  let underWay = false

  function flush(): void {
    const { batch, rest, late } = nextBatch(waiting, options)
    waiting = rest
    for (const member of late) {
      refuse(member, unavailable(`a call of ${name} waited ${limits.waitMsMax} ms for its turn and was not sent`))
    }
    if (batch.length === 0) {
      underWay = false
      return
    }
    // Called in a promise, so that a sender that throws rejects like one that fails.
    Promise.resolve(batch.map(({ item }) => item))
      .then(send)
      .then(
        results => batch.forEach((member, index) => resolveBy(member, results, index)),
        (error: unknown) => batch.forEach(member => refuse(member, error)),
      )
      .finally(() => setImmediate(flush))
  }

  function resolveBy(
    member: Waiting<Item, Result>,
    results: readonly (Result | Promise<Result>)[],
    index: number,
  ): unknown {
    if (index >= results.length) {
      return refuse(member, new LatchkeyError('invariant', 'a batch has fewer results than members'))
    }
    // Within the bounds that were just compared.
    const result = results[index] as Result | Promise<Result>
    if (!(result instanceof Promise)) return settle(member, result)
    // A member that went on alone is open until its own answer.
    return result.then(
      value => settle(member, value),
      (error: unknown) => refuse(member, error),
    )
  }

  function settle(member: Waiting<Item, Result>, result: Result): void {
    open -= 1
    member.resolve(result)
  }

  function refuse(member: Waiting<Item, Result>, error: unknown): void {
    open -= 1
    member.reject(error)
  }

  return item =>
    new Promise((resolve, reject) => {
      if (open >= limits.openMax) {
        return reject(unavailable(`${open} calls of ${name} are already open: the store does not keep up`))
      }
      open += 1
      waiting.push({ item, sinceMs: clock.monotonicMs(), resolve, reject })
      if (underWay) return
      underWay = true
      setImmediate(flush)
    })
}

interface Gathered<Member> {
  readonly batch: readonly Member[]
  readonly rest: Member[]
  /** Waited too long. */
  readonly late: readonly Member[]
}

/** In the order of arrival; who shares a key with an earlier member waits on. */
function nextBatch<Item, Result>(
  waiting: readonly Waiting<Item, Result>[],
  { keyOf, limits, clock }: GatherOptions<Item, Result>,
): Gathered<Waiting<Item, Result>> {
  const nowMs = clock.monotonicMs()
  const keys = new Set<string>()
  const batch: Waiting<Item, Result>[] = []
  const rest: Waiting<Item, Result>[] = []
  const late: Waiting<Item, Result>[] = []
  for (const member of waiting) {
    const key = keyOf(member.item)
    if (nowMs - member.sinceMs > limits.waitMsMax) late.push(member)
    else if (batch.length === limits.sizeMax || keys.has(key)) rest.push(member)
    else {
      keys.add(key)
      batch.push(member)
    }
  }
  return { batch, rest, late }
}

function unavailable(message: string): LatchkeyError {
  return new LatchkeyError('store-unavailable', message)
}
