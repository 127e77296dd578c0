/**
 * What begins with reading one identity, and writes where the row gives no answer. One write of an identity at a time: calls that come
 * meanwhile read again when it has ended, and nearly always find a row that answers them. So a thousand claims of one key are one
 * write, and delay no other key.
 */
import type { Clock } from '../../../ports/clock.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { overloaded } from './errors.ts'
import type { WriteRequest } from './group-commit.ts'
import type { Handle } from './handle.ts'
import type { RowRead, RowReads } from '../keys/read-batch.ts'

export interface ReadOrWrite<T> {
  /** Undefined: `write` decides. */
  seen(record: KeyRecord | undefined, handle: Handle): T | undefined
  write(handle: Handle): T
}

export interface ReadThenWriteOptions {
  readonly reads: RowReads
  readonly write: <T>(wanted: WriteRequest<T>) => void
  readonly clock: Clock
  readonly waitMs: number
  readonly waitersMax: number
}

interface Callbacks<T> {
  done(value: T): void
  failed(error: unknown): void
}

export function readThenWrite({ reads, write, clock, waitMs, waitersMax }: ReadThenWriteOptions) {
  const writes = writesByKey(waitersMax)

  return <T>(id: string, ways: ReadOrWrite<T>, { done, failed }: Callbacks<T>): void => {
    const sinceMs = clock.monotonicMs()
    const read: RowRead = {
      id,
      failed,
      found(record, handle) {
        const answer = ways.seen(record, handle)
        if (answer !== undefined) return done(answer)
        if (writes.begin(id, again)) write({ work: ways.write, committed, failed: refused })
      },
    }
    const again = () => {
      if (clock.monotonicMs() - sinceMs <= waitMs) return reads.join(read)
      failed(overloaded(`nothing was written: other calls wrote the same key for ${waitMs} ms`))
    }
    const committed = (value: T) => {
      writes.end(id)
      done(value)
    }
    const refused = (error: unknown) => {
      writes.end(id)
      failed(error)
    }
    reads.join(read)
  }
}

interface WritesByKey {
  /** True: no write of the identity is under way, and the caller's is, until `end`. False: `again` is called when the one before has ended. */
  begin(id: string, again: () => void): boolean
  end(id: string): void
}

/** `waitersMax`: of all identities together. One never has more than it leaves free. */
function writesByKey(waitersMax: number): WritesByKey {
  const writing = new Map<string, (() => void)[] | undefined>()
  let waiting = 0
  return {
    begin(id, again) {
      if (!writing.has(id)) {
        writing.set(id, undefined)
        return true
      }
      const others = writing.get(id) ?? []
      if (others.length >= waitersMax - waiting) {
        throw overloaded(`${others.length} calls wait for one key of the SQLite file already`)
      }
      others.push(again)
      writing.set(id, others)
      waiting += 1
      return false
    },
    end(id) {
      const others = writing.get(id) ?? []
      writing.delete(id)
      waiting -= others.length
      for (const again of others) again()
    },
  }
}
