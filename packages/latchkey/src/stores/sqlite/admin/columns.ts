/** Rows by the columns that their statement names. */
import type { Handle } from '../connection/handle.ts'
import type { SqliteParameter } from '../driver.ts'

/** The tables are STRICT, and the statement names its columns as `Row` has them. */
export function rowsAs<Row>(handle: Handle, sql: string, parameters: readonly SqliteParameter[] = []): readonly Row[] {
  return handle.rows(sql, parameters) as unknown as readonly Row[]
}
