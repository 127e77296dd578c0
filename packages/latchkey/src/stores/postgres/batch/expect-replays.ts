/** Whether the next batch of claims will meet rows that are there. It is then cheaper to look for them first. */
import type { PgResult } from '../driver.ts'

/**
 * Batches without such a row before none is expected again. A look costs a twentieth of a claim; a row that was not looked for costs its
 * batch a wait where another transaction is just changing it, so one replay in hundreds of claims is reason enough to look.
 */
const quietBatches = 16

export interface ExpectedReplays {
  areExpected(): boolean
  /** Passes the answer to a batch through. One that was refused may have met a row that another transaction was changing. */
  watch(answer: Promise<PgResult>): Promise<PgResult>
}

export function expectReplays(): ExpectedReplays {
  let batchesLeft = 0
  return {
    areExpected: () => batchesLeft > 0,
    async watch(answer) {
      try {
        const result = await answer
        batchesLeft = result.rows.length > 0 ? quietBatches : Math.max(0, batchesLeft - 1)
        return result
      } catch (error) {
        batchesLeft = quietBatches
        throw error
      }
    },
  }
}
