/** What a store's author provides to run the store conformance cases against the real server. */
import type { Store } from '../ports/store.ts'

export interface StoreHarness {
  /** A store over the harness's empty data. Called again: another handle on the same data, as a second process has. */
  open(): Promise<Store>
  /** Lets the store's clock move on, for all handles: by its time source, or by moving back each instant written by it. */
  advance(ms: number): Promise<void>
  /** Present for transactional stores: a table of the application's, in the same database. */
  readonly business?: BusinessTable
  close(): Promise<void>
}

/**
 * What a newer version, or an accident, leaves in a row: a code of its state or of its recovery that this version does not know;
 * an outcome in a later format, cut off, with headers that are none, or missing; a step in a state that is not known.
 */
export type Damage =
  | 'state'
  | 'recovery'
  | 'outcome-format'
  | 'outcome-cut'
  | 'outcome-headers'
  | 'outcome-missing'
  | 'step'

/** For stores whose rows others can write. */
export interface SpoilableHarness extends StoreHarness {
  /** Writes to the row past the store, as another version would. */
  spoil(id: string, damage: Damage): Promise<void>
}

export interface SpoilCase {
  /** A sentence about behaviour. */
  readonly name: string
  run(harness: SpoilableHarness): Promise<void>
}

export interface BusinessTable {
  insert(tx: unknown, value: string): Promise<void>
  /** Through the transaction, as a library does it that opens its own. */
  send(tx: unknown, command: 'BEGIN' | 'COMMIT' | 'ROLLBACK'): Promise<void>
  /** What is committed, seen from outside any transaction. */
  values(): Promise<readonly string[]>
}

export interface StoreCase {
  /** A sentence about behaviour. */
  readonly name: string
  /** Run only by stores with this trait. */
  readonly needs?: 'transactional' | 'many-processes'
  run(harness: StoreHarness): Promise<void>
}

/** Runs a case over empty data, and closes the harness whatever happens. */
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
