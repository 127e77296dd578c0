/** Whether the next batch of claims will meet rows that are there. It is then cheaper to look for them first. */

/**
 * Batches without such a row before none is expected again. A look costs a twentieth of a claim; a row that was not looked for costs its
 * batch a wait where another transaction is just changing it, so one replay in hundreds of claims is reason enough to look.
 */
const quietBatches = 16

export interface ExpectedReplays {
  areExpected(): boolean
  /** A batch has met so many. */
  met(rows: number): void
  /** One that was refused may have met a row that another transaction was changing. */
  refused(): void
}

export function expectReplays(): ExpectedReplays {
  let batchesLeft = 0
  return {
    areExpected: () => batchesLeft > 0,
    met: rows => void (batchesLeft = rows > 0 ? quietBatches : Math.max(0, batchesLeft - 1)),
    refused: () => void (batchesLeft = quietBatches),
  }
}
