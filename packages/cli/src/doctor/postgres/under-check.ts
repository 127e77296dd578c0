/** What the checks of PostgreSQL look at. */
import type { Clock, Store } from 'latchkey'
import type { Pool } from 'pg'

export interface PostgresUnderCheck {
  readonly pool: Pool
  readonly schema: string
  readonly store: Store
  readonly clock: Clock
}

/** As an identifier in a statement. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
