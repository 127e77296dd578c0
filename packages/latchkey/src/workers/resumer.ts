/**
 * Resumes phased work that has no owner: its process died, or it waits for another try. The claim decides which of several processes gets a
 * row; the others continue with other rows.
 */
import { anyEnd, type Clock } from '../ports/clock.ts'
import type { Resumable, Store } from '../ports/store.ts'
import { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import type { Resumer as OperationResumer } from '../engine/operation.ts'
import { within } from '../engine/store/call.ts'
import type { TurnResult } from './loop.ts'

export interface ResumerOptions extends Pick<
  Internals<unknown>,
  'phased' | 'overdue' | 'clock' | 'telemetry' | 'closing'
> {
  readonly store: Pick<Store, 'resumable'>
  readonly concurrency: number
}

export interface Resumer {
  turn(signal: AbortSignal): Promise<TurnResult>
  /** Resolves when no row is being worked on. */
  outstanding(): Promise<unknown>
  /** Evidence has settled the row: it may be resumed at once. */
  settled(id: string): void
}

/** Several processes see the same rows: each reads more than it needs and picks at random, so that fewer claims fail. */
const rowsPerSlot = 4
/** Rows of operations that are not declared here stay at the front of the list; this many are read to reach our own behind them. */
const limitMax = 1_000
/** How long a turn waits for a free slot before it ends: far below the limit of a turn. */
const slotWaitMs = 1_000
/** How long this process leaves a row alone that did not finish, so that one that fails at once does not spin. The store's due time comes on top. */
const restMs = 2_000
/** One crash may have another cause; from the second on the row is a suspect. */
const suspectCrashes = 2
/** The maximum hold: a definition that hangs for longer frees its slot, and the fence protects the row. */
const resumeMsMax = 900_000

export function resumer(options: ResumerOptions): Resumer {
  const { store, concurrency, clock, telemetry, closing } = options
  const busy = new Map<string, Promise<void>>()
  const restsUntilMs = new Map<string, number>()
  const resumerOf = resumersOf(options)
  let limit = concurrency * rowsPerSlot
  /** A suspect is running: nothing is started beside it. */
  let suspect = false

  function resume(row: Resumable, operation: OperationResumer): void {
    const { id, operation: name } = row.identity
    const rest = () => void restsUntilMs.set(id, clock.monotonicMs() + restMs)
    const work = within(clock, resumeMsMax, () => operation.resume(row))
      .then(end => void (end === 'completed' || rest()))
      .catch((error: unknown) => {
        rest()
        telemetry.report('a row could not be resumed', { operation: name, identity: id, error })
      })
      .finally(() => void busy.delete(id))
    busy.set(id, work)
  }

  const isRested = ({ identity: { id } }: Resumable) =>
    !busy.has(id) && (restsUntilMs.get(id) ?? 0) <= clock.monotonicMs()

  /** A row that may kill its process runs alone, after all others, so that it interrupts no other row. */
  function choose(waiting: readonly Resumable[], free: number): readonly Resumable[] {
    const innocent = waiting.filter(({ crashes }) => crashes < suspectCrashes)
    if (innocent.length > 0) return innocent.slice(0, free)
    if (busy.size > 0) return []
    suspect = waiting.length > 0
    return waiting.slice(0, 1)
  }

  return {
    async turn(signal) {
      // A Latchkey that is closing waits for running work; nothing may be added.
      if (closing.aborted) return 'idle'
      if (suspect || busy.size >= concurrency) await anyEnd(busy.values(), { clock, delayMs: slotWaitMs, signal })
      suspect &&= busy.size > 0
      const free = suspect ? 0 : concurrency - busy.size
      if (free <= 0) return 'more'
      forgetPast(restsUntilMs, clock.monotonicMs())
      const rows = await store.resumable({ limit })
      const waiting = rows.filter(row => resumerOf(row) !== undefined && isRested(row))
      const mayBeMore = rows.length >= limit && limit < limitMax
      limit = waiting.length === 0 && mayBeMore ? Math.min(2 * limit, limitMax) : concurrency * rowsPerSlot
      if (signal.aborted || closing.aborted) return 'idle'
      const chosen = choose(shuffled(waiting, clock), free)
      // Only suspects are waiting, and something is running: they start when it has ended.
      if (chosen.length === 0 && waiting.length > 0) await anyEnd(busy.values(), { clock, delayMs: slotWaitMs, signal })
      for (const row of chosen) {
        const operation = resumerOf(row)
        if (operation !== undefined) resume(row, operation)
      }
      return waiting.length > chosen.length || mayBeMore ? 'more' : 'idle'
    },
    outstanding: () => Promise.all(busy.values()),
    settled: id => void restsUntilMs.delete(id),
  }
}

/**
 * Rows of other operations are left to a process that declares them; reported once, because without one they wait until their deadline, or
 * for ever. One whose deadline has passed ends here as well as anywhere.
 */
function resumersOf({ phased, overdue, telemetry }: ResumerOptions): (row: Resumable) => OperationResumer | undefined {
  const undeclared = new Set<string>()
  return row => {
    const { operation } = row.identity
    const declared = phased.get(operation)
    if (declared !== undefined) return declared[engine]
    if (!undeclared.has(operation)) {
      undeclared.add(operation)
      telemetry.report('rows are not resumed here: their operation is not declared in this process', { operation })
    }
    return row.overdue ? overdue : undefined
  }
}

function forgetPast(untilMs: Map<string, number>, nowMs: number): void {
  for (const [id, time] of untilMs) if (time <= nowMs) untilMs.delete(id)
}

function shuffled<T>(values: readonly T[], { random }: Clock): readonly T[] {
  return values
    .map(value => ({ value, order: random() }))
    .sort((left, right) => left.order - right.order)
    .map(({ value }) => value)
}
