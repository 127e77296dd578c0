/**
 * Calls of one turn of the event loop, gathered so that they share a script and its reply. In a cluster those of one bucket do, because a script there
 * has keys of one slot.
 */
import { atEndOfTurn, type TurnEnd } from '../../../ports/clock.ts'
import { isError, LatchkeyError } from '../../../ports/errors.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { isCrossSlot } from './errors.ts'
import type { Link } from './link.ts'
import { textOf } from './reply.ts'
import type { ScriptForMany } from './script.ts'

/** One kind of call. */
export interface CallsTogether<Item, Result> {
  readonly script: ScriptForMany
  /** The arguments of one call, as the script unpacks them. */
  readonly pack: (item: Item) => Buffer
  /** `lack`: what was written is not on as many replicas as were asked for. */
  readonly resultOf: (item: Item, reply: Reply | undefined, lack: LatchkeyError | undefined) => Result | Promise<Result>
  /** Where the script failed as a whole. Absent: its error is that of each call. */
  readonly failed?: (item: Item, error: unknown) => Promise<Result>
}

/** Sends packed calls as one script. */
export type RunForMany = (
  calls: readonly Buffer[],
) => Promise<{ readonly replies: readonly Reply[]; readonly lack: LatchkeyError | undefined }>

export interface GatherOptions {
  forMany(script: ScriptForMany): RunForMany
  /** Whatever it sends leaves in one write. */
  inOneWrite(send: () => void): void
  readonly isCluster: boolean
}

/** Other clients of the server wait while a script runs: so many calls take it about a millisecond. */
const callsMax = 100

interface Call<Item, Result> {
  readonly item: Item
  readonly packed: Buffer
  resolve(result: Result | Promise<Result>): void
  reject(error: unknown): void
}

export function gatherCalls({ forMany, inOneWrite, isCluster }: GatherOptions): Link['together'] {
  let byBucket = isCluster
  let due: (() => void)[] = []
  const turn: TurnEnd = {
    endOfTurn() {
      const flushes = due
      due = []
      inOneWrite(() => {
        for (const flush of flushes) flush()
      })
    },
  }

  return function together<Item, Result>(kind: CallsTogether<Item, Result>): (item: Item) => Promise<Result> {
    const run = forMany(kind.script)
    let waiting: Call<Item, Result>[] = []

    function flush(): void {
      const calls = waiting
      waiting = []
      sendAll(calls)
    }

    function sendAll(calls: readonly Call<Item, Result>[]): void {
      for (const group of byBucket ? ofOneBucket(calls) : [calls]) {
        if (group.length <= callsMax) void send(group)
        else for (let from = 0; from < group.length; from += callsMax) void send(group.slice(from, from + callsMax))
      }
    }

    async function send(calls: readonly Call<Item, Result>[]): Promise<void> {
      try {
        const { replies, lack } = await run(calls.map(({ packed }) => packed))
        for (const [at, call] of calls.entries()) settle(call, replies[at], lack)
      } catch (error) {
        // A server of a cluster, or a proxy in front of one, behind a client for a single server. Nothing of it ran.
        if (!byBucket && isCrossSlot(isError(error) ? error.cause : undefined)) {
          byBucket = true
          return sendAll(calls)
        }
        for (const call of calls) fail(call, error)
      }
    }

    function settle(call: Call<Item, Result>, reply: Reply | undefined, lack: LatchkeyError | undefined): void {
      try {
        call.resolve(kind.resultOf(call.item, decided(reply), lack))
      } catch (error) {
        fail(call, error)
      }
    }

    function fail({ item, resolve, reject }: Call<Item, Result>, error: unknown): void {
      if (kind.failed === undefined) reject(error)
      else resolve(kind.failed(item, error))
    }

    return item =>
      new Promise((resolve, reject) => {
        if (waiting.push({ item, packed: kind.pack(item), resolve, reject }) > 1) return
        if (due.push(flush) === 1) atEndOfTurn(turn)
      })
  }
}

function ofOneBucket<T extends { readonly packed: Buffer }>(calls: readonly T[]): Iterable<readonly T[]> {
  const groups = new Map<number | undefined, T[]>()
  for (const call of calls) {
    const [bucket] = call.packed
    const group = groups.get(bucket)
    if (group === undefined) groups.set(bucket, [call])
    else group.push(call)
  }
  return groups.values()
}

/** An error of this call alone, as when its key holds something else. */
function decided(reply: Reply | undefined): Reply | undefined {
  if (!Array.isArray(reply) || reply[0] !== -1) return reply
  throw new LatchkeyError('store-unavailable', `Redis failed: ${textOf(reply[1])}`)
}
