/** What a store's author provides to run the store conformance cases against the real server. */
import type { Faculty, Store } from 'latchkey'

export interface StoreHarness {
  /** A store over the harness's empty data. Each further call returns another handle on the same data, like a second process. */
  open(): Promise<Store>
  /** Advances the store's clock for all handles: through its time source, or by moving back each time that it has written. */
  advance(ms: number): Promise<void>
  /** Present for transactional stores: a table of the application in the same database. */
  readonly business?: BusinessTable
  close(): Promise<void>
}

/**
 * What a newer version, or an accident, may leave in a row: an unknown code for its state or its recovery; an outcome in a later format,
 * truncated, with invalid headers, or missing; a step in an unknown state.
 */
export type Damage =
  | 'state'
  | 'recovery'
  | 'outcome-format'
  | 'outcome-cut'
  | 'outcome-headers'
  | 'outcome-missing'
  | 'step'

/** For stores whose rows other programs can write. */
export interface SpoilableHarness extends StoreHarness {
  /** Writes to the row directly, not through the store, as another version would. */
  spoil(id: string, damage: Damage): Promise<void>
}

export interface SpoilCase {
  /** A sentence about behaviour. */
  readonly name: string
  /** As of a store case. */
  readonly needs?: readonly Faculty[]
  run(harness: SpoilableHarness): Promise<void>
}

export interface BusinessTable {
  insert(tx: unknown, value: string): Promise<void>
  /** Through the transaction, as a library does that manages transactions itself. */
  send(tx: unknown, command: 'BEGIN' | 'COMMIT' | 'ROLLBACK'): Promise<void>
  /** The committed rows, seen from outside any transaction. */
  values(): Promise<readonly string[]>
}

export interface StoreCase {
  /** A sentence about behaviour. */
  readonly name: string
  /** Run only by stores that have all of these. */
  readonly needs?: readonly Faculty[]
  run(harness: StoreHarness): Promise<void>
}

/** The same cases, for stores that also have these faculties. */
export function needing(faculties: readonly Faculty[], cases: readonly StoreCase[]): readonly StoreCase[] {
  return cases.map(each => ({ ...each, needs: [...new Set([...faculties, ...(each.needs ?? [])])] }))
}

/** Runs a case over empty data and closes the harness in every case. */
export async function withHarness<H extends StoreHarness>(
  open: () => Promise<H>,
  run: (harness: H) => Promise<void>,
): Promise<void> {
  const harness = await open()
  try {
    await run(harness)
  } finally {
    await harness.close()
  }
}
