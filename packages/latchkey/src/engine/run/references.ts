/** `x.reference`: names that a handler gives its row, and `find`, which finds the row by them. */
import type { Claim } from '../../ports/store.ts'
import type { Core } from '../runtime.ts'

/** Longer than any provider's id, and short enough for an index. */
export const referenceLengthMax = 200
/** Of one execution. */
const referencesMax = 10

/** What an execution records under. */
export interface ReferenceWriter {
  /** Never throws: an operator's name for a row must not decide what becomes of it. What cannot be stored is reported. */
  add(text: string): Promise<void>
  /** Those that are still being written. Undefined: none is. */
  readonly written: Promise<void> | undefined
}

interface Writing {
  readonly operation: string
  readonly id: string
}

/** Why a text is no reference. Undefined: it is one. */
export function referenceFault(text: unknown): string | undefined {
  const isSound = typeof text === 'string' && text !== '' && text.length <= referenceLengthMax
  // No store keeps U+0000 or half a surrogate pair as it is.
  if (isSound && !/[\0\p{Surrogate}]/u.test(text)) return undefined
  return `a reference must be 1 to ${referenceLengthMax} characters of valid Unicode without U+0000`
}

/** Each in a commit of its own, before the row's end: a row whose owner dies after the call is found by it as well. */
export function referencesOf<Tx>(core: Core<Tx>, operation: string, claim: Claim): ReferenceWriter {
  const { store, calls } = core
  return writer(core, { operation, id: claim.id }, async text => {
    const { references } = store
    if (references === undefined) throw new Error(missing(store.name))
    await calls.call('add reference', () => references.add(claim, [{ index: text, sealed: undefined }]))
  })
}

/** Gathered, to be written in the transaction that records the row. */
export function gatheredReferences<Tx>(core: Core<Tx>, row: Writing, gathered: string[]): ReferenceWriter {
  return writer(core, row, async text => {
    if (core.store.references === undefined) throw new Error(missing(core.store.name))
    gathered.push(text)
  })
}

function writer<Tx>(
  { telemetry }: Core<Tx>,
  { operation, id }: Writing,
  write: (text: string) => Promise<void>,
): ReferenceWriter {
  let count = 0
  let written: Promise<void> | undefined
  const report = (error: unknown) =>
    telemetry.report(`a reference of ${operation} was not stored: the row is not found by it`, {
      operation,
      identity: id,
      error,
    })
  return {
    get written() {
      return written
    },
    async add(text) {
      count += 1
      const fault =
        referenceFault(text) ?? (count > referencesMax ? `a row may get ${referencesMax} references` : undefined)
      if (fault !== undefined) return report(new TypeError(fault))
      const writing = write(text).catch(report)
      written = Promise.all([written, writing]).then(() => undefined)
      return writing
    },
  }
}

function missing(store: string): string {
  return `the ${store} store has no references (traits.faculties)`
}
