/** Erasing a tenant: a mark on its scope, then batches until nothing that has ended is left. */
import { checkOptions } from '../../ports/check-options.ts'
import type { ErasedBatch, ErasureLeft } from '../../ports/erasure.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { Core } from '../runtime.ts'
import { eraseChecks } from '../option-checks.ts'
import { type Scope, scopeText } from '../request.ts'

export interface EraseOptions {
  /** The tenant, as your scope function returns it. */
  readonly scope: Scope
  /** How many rows are deleted at a time. Default 500. */
  readonly batch?: number
  /** Called after each batch with what was erased so far. A throw stops the run; the mark stays, and `reap` continues. */
  readonly onProgress?: (erased: ErasedBatch) => void | Promise<void>
}

/** What was erased, and what is still open: it goes when it has ended. */
export interface Erased extends ErasedBatch, ErasureLeft {}

export type Erase = (options: EraseOptions) => Promise<Erased>

const batchDefault = 500
/** No request waits for it. */
const batchMsMax = 30_000

export function eraser<Tx>({ store, calls }: Core<Tx>): Erase {
  return async options => {
    checkOptions('erase', options, eraseChecks)
    const { batch: limit = batchDefault, onProgress } = options
    const { erasure } = store
    if (options.scope === undefined) throw misconfigured('erase needs the scope of a tenant')
    if (erasure === undefined) throw misconfigured(`erase: the ${store.name} store has no erasure (traits.faculties)`)
    const scope = scopeText(options.scope)
    await calls.call('erase', () => erasure.mark(scope), batchMsMax)
    let erased: ErasedBatch = { rows: 0, messages: 0, auditTexts: 0 }
    for (;;) {
      const batch = await calls.call('erase', () => erasure.erase({ scope, limit }), batchMsMax)
      if (batch.rows + batch.messages + batch.auditTexts === 0) break
      erased = sum(erased, batch)
      await onProgress?.(erased)
    }
    return { ...erased, ...(await calls.call('erase', () => erasure.left(scope), batchMsMax)) }
  }
}

function sum(left: ErasedBatch, right: ErasedBatch): ErasedBatch {
  return {
    rows: left.rows + right.rows,
    messages: left.messages + right.messages,
    auditTexts: left.auditTexts + right.auditTexts,
  }
}
