/** The line of the trail, written in the transaction that ends an execution, from the row as it stands there. */
import { stateCodes } from '../../shared/codes.ts'
import type { Database } from '../connection/database.ts'
import type { WorkOnItem } from '../connection/group-commit.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs } from '../keys/row.ts'

const { pending, completed, unknown } = stateCodes

const lineSql = `
  INSERT INTO latchkey_audit_records (at_ms, id, fence, scope, operation, what, status, fingerprint)
  SELECT ?2, id, fence, scope, operation,
    CASE state WHEN ${completed} THEN 'completed' WHEN ${unknown} THEN 'unknown' WHEN ${pending} THEN 'resumed'
      ELSE CASE WHEN parked_at_ms IS NULL THEN 'failed' ELSE 'parked' END END,
    ?3, fingerprint
  FROM latchkey_keys WHERE id = ?1`

/** To be called after every write that ends an execution, or leads out of unknown. Does nothing where no lines are wanted. */
export function addLine(handle: Handle, id: string, status?: number): void {
  if (handle.recordsLines === true) handle.run(lineSql, [id, readNowMs(handle), status ?? null])
}

export function recordingHandle(handle: Handle): Handle {
  return { ...handle, recordsLines: true }
}

/** The same file, whose writes record lines. */
export function recordingDatabase(database: Database): Database {
  const recordingMany = new Map<unknown, unknown>()
  return {
    ...database,
    write: work => database.write(handle => work(recordingHandle(handle))),
    writeItem<Item, T>({ item, many }: WorkOnItem<T, Item>) {
      // One function for each: by it a batch finds the items that belong together.
      const known = recordingMany.get(many) as WorkOnItem<T, Item>['many'] | undefined
      const recorded = known ?? ((handle: Handle, items: readonly Item[]) => many(recordingHandle(handle), items))
      recordingMany.set(many, recorded)
      return database.writeItem({ item, many: recorded })
    },
  }
}
