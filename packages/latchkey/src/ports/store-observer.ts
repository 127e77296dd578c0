/** What a store reports about its inside, which no answer shows. Called for each batch, not for each call. */
export interface StoreObserver {
  /** A batch left: how many calls share it, and how long the first of them has waited. */
  batch(size: number, waitedMs: number): void
  /** A batch or a transaction has its connection, after so long. */
  connection(waitedMs: number): void
  /** A batch gave up waiting for the lock of a row. */
  lockTimeout(): void
  /** Another server answers than before, or the same one was started again: what it had not kept or not yet been sent is gone. */
  failover(): void
}
