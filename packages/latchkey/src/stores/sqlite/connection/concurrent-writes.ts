/**
 * Writes that begin with a look at one identity, one at a time: those that come meanwhile look again when it has ended, and
 * nearly always see a row that answers them. So a thousand claims of one key are one write, and hold up nobody else's.
 */
import { overloaded } from './errors.ts'

export interface TwinWrites {
  /** True: nobody writes for the identity, and the caller does, until `end`. False: `again` is called when the one before has ended. */
  begin(id: string, again: () => void): boolean
  end(id: string): void
}

/** `waitersMax`: of all identities together. One never has more than it leaves free. */
export function twinWrites(waitersMax: number): TwinWrites {
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
