/** What begins with a look at one identity, and writes where the row gives no answer. */
import type { Clock } from '../../../ports/clock.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { overloaded } from './errors.ts'
import type { GroupCommit, Wanted } from './group-commit.ts'
import type { Handle } from './handle.ts'
import type { Look, Looks } from '../keys/read-batch.ts'
import { twinWrites } from './concurrent-writes.ts'

export interface LookOrWrite<T> {
  /** Undefined: `write` decides. */
  seen(record: KeyRecord | undefined, handle: Handle): T | undefined
  write(handle: Handle): T
}

interface Parts {
  readonly looks: Looks
  readonly commit: GroupCommit
  readonly clock: Clock
  readonly waitMs: number
  readonly waitersMax: number
}

interface Told<T> {
  done(value: T): void
  failed(error: unknown): void
}

export function lookThenWrite({ looks, commit, clock, waitMs, waitersMax }: Parts) {
  const twins = twinWrites(waitersMax)

  function write<T>(id: string, { work, committed, failed }: Wanted<T>): void {
    const ended = <Value>(tell: (value: Value) => void) => {
      return (value: Value) => {
        twins.end(id)
        tell(value)
      }
    }
    try {
      commit(waitMs, { work, committed: ended(committed), failed: ended(failed) })
    } catch (error) {
      twins.end(id)
      throw error
    }
  }

  return <T>(id: string, ways: LookOrWrite<T>, { done, failed }: Told<T>): void => {
    const sinceMs = clock.monotonicMs()
    const look: Look = {
      id,
      failed,
      found(record, handle) {
        const answer = ways.seen(record, handle)
        if (answer !== undefined) return done(answer)
        if (twins.begin(id, again)) write(id, { work: ways.write, committed: done, failed })
      },
    }
    const again = () => {
      if (clock.monotonicMs() - sinceMs <= waitMs) return looks.join(look)
      failed(overloaded(`nothing was written: others wrote the same key for ${waitMs} ms`))
    }
    looks.join(look)
  }
}
