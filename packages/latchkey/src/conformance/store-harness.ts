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

export interface BusinessTable {
  insert(tx: unknown, value: string): Promise<void>
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
export async function withHarness(
  open: () => Promise<StoreHarness>,
  run: (harness: StoreHarness) => Promise<void>,
): Promise<void> {
  const harness = await open()
  try {
    await run(harness)
  } finally {
    await harness.close()
  }
}
