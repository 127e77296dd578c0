import type { Store } from 'latchkey'

interface EmptyDatabase {
  moveTimesBack(ms: number): Promise<void>
  drop(): Promise<void>
}
declare function emptyDatabase(): Promise<EmptyDatabase>
declare function yourStore(database: EmptyDatabase): Store
