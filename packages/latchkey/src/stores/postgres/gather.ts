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
  readonly resolve: (result: Result | Promise<Result>) => unknown
  readonly reject: (error: unknown) => void
}

export function gather<Item, Result>(options: GatherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { name, send, limits, clock } = options
  let waiting: Waiting<Item, Result>[] = []
  let open = 0
  let underWay = false

  function flush(): void {
    const { batch, rest } = nextBatch(waiting, options)
    waiting = rest
    if (batch.length === 0) {
      underWay = false
      return
    }
    // Called in a promise, so that a sender that throws rejects like one that fails.
    Promise.resolve(batch.map(({ item }) => item))
      .then(send)
      .then(
        results => resolveEach(batch, results),
        (error: unknown) => batch.forEach(({ reject }) => reject(error)),
      )
      .finally(() => setImmediate(flush))
  }

  function counted(
    resolve: (result: Result) => void,
    reject: (error: unknown) => void,
  ): Pick<Waiting<Item, Result>, 'resolve' | 'reject'> {
    const refuse = (error: unknown) => {
      open -= 1
      reject(error)
    }
    const settle = (result: Result) => {
      open -= 1
      resolve(result)
    }
    // A member that went on alone is open until its own answer.
    return {
      reject: refuse,
      resolve: result => (result instanceof Promise ? result.then(settle, refuse) : settle(result)),
    }
  }

  return item =>
    new Promise((resolve, reject) => {
      if (open >= limits.openMax) {
        return reject(unavailable(`${open} calls of ${name} are already open: the store does not keep up`))
      }
      open += 1
      waiting.push({ item, sinceMs: clock.monotonicMs(), ...counted(resolve, reject) })
      if (underWay) return
      underWay = true
      setImmediate(flush)
    })
}

function resolveEach<Item, Result>(
  batch: readonly Waiting<Item, Result>[],
  results: readonly (Result | Promise<Result>)[],
): void {
  batch.forEach((member, index) => {
    if (index >= results.length) member.reject(new LatchkeyError('invariant', 'a batch has fewer results than members'))
    // Within the bounds that were just compared.
    else member.resolve(results[index] as Result | Promise<Result>)
  })
}

/** In the order of arrival, without those that waited too long; who shares a key with an earlier member waits on. */
function nextBatch<Item, Result>(
  waiting: readonly Waiting<Item, Result>[],
  { name, keyOf, limits, clock }: GatherOptions<Item, Result>,
): { readonly batch: readonly Waiting<Item, Result>[]; readonly rest: Waiting<Item, Result>[] } {
  const nowMs = clock.monotonicMs()
  const batch = new Map<string, Waiting<Item, Result>>()
  const rest: Waiting<Item, Result>[] = []
  for (const member of waiting) {
    const key = keyOf(member.item)
    if (nowMs - member.sinceMs > limits.waitMsMax) {
      member.reject(unavailable(`a call of ${name} waited ${limits.waitMsMax} ms for its turn and was not sent`))
    } else if (batch.size < limits.sizeMax && !batch.has(key)) batch.set(key, member)
    else rest.push(member)
  }
  return { batch: [...batch.values()], rest }
}

function unavailable(message: string): LatchkeyError {
  return new LatchkeyError('store-unavailable', message)
}
