/**
 * Brings every stored value under the current key, page by page, while requests are served: a value is replaced only if it is still the one that was
 * read. Whatever is written meanwhile is written under the current key, so that one run is enough; after a crash, another run finds what is left.
 */
import { checkOptions } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { Message } from '../../ports/outbox.ts'
import { isSealedMessage, isSealedOutcome, sealedTextMark } from '../../ports/sealed-marks.ts'
import type { Store } from '../../ports/store.ts'
import type {
  StoredMessage,
  StoredOutcome,
  StoredParked,
  StoredRef,
  StoredReferenceValue,
  StoredText,
  StoredValue,
  Values,
} from '../../ports/faculties/values.ts'
import { batchChecks } from '../option-checks.ts'
import { openParked, sealParked } from './inbox.ts'
import type { Keyring } from './keyring.ts'
import { openMessage, sealMessage } from './outbox.ts'
import { openOutcome, sealOutcome } from './outcome.ts'
import { hashedRef } from './reconciliation.ts'
import { referenceText, sealReference } from './references.ts'
import { keyNameOf, openText, type Place, sealedBytesOf, sealText } from './seal.ts'

export interface RewrapProgress {
  /** Values that were looked at. */
  readonly read: number
  /** Of those, how many were under another key, or plain, and are under the current one now. */
  readonly rewritten: number
  /** Ids of rows, or positions of messages, with a value that cannot be opened; the first 100. Keep its key until each was inspected. */
  readonly unreadable: readonly string[]
}

export interface RewrapOptions {
  /** How many rows are read at a time. Default 500. */
  readonly batch?: number
  /** Called after each batch. A throw stops the run; what was rewritten stays. */
  readonly onProgress?: (progress: RewrapProgress) => void | Promise<void>
}

export type Rewrap = (options?: RewrapOptions) => Promise<RewrapProgress>

const batchDefault = 500
const namedMax = 100

/** `store`: the one below the encryption. */
export function rewrapOf(store: Pick<Store, 'values' | 'name'>, ring: Keyring | undefined): Rewrap {
  return async (options = {}) => {
    checkOptions('rewrap', options, batchChecks)
    const { batch = batchDefault, onProgress } = options
    if (ring === undefined) throw misconfigured('rewrap: createLatchkey was given no encryption')
    const { values } = store
    if (values === undefined)
      throw misconfigured(
        `rewrap: the ${store.name} store has no values (traits.faculties), so it cannot page through what is stored`,
      )
    let progress: RewrapProgress = { read: 0, rewritten: 0, unreadable: [] }
    for (let after: string | undefined, more = true; more; more = after !== undefined) {
      const page = await values.page({ limit: batch, after })
      for (const value of page.values) progress = counted(progress, value, await rewrite(values, ring, value))
      after = page.next
      await onProgress?.(progress)
    }
    return progress
  }
}

type Rewritten = 'current' | 'rewritten' | 'unreadable' | 'changed'

function counted(progress: RewrapProgress, value: StoredValue, how: Rewritten): RewrapProgress {
  const { read, rewritten, unreadable } = progress
  const isNamed = how === 'unreadable' && unreadable.length < namedMax
  return {
    read: read + 1,
    rewritten: rewritten + (how === 'rewritten' ? 1 : 0),
    unreadable: isNamed ? [...unreadable, nameOf(value)] : unreadable,
  }
}

function nameOf(value: StoredValue): string {
  if (value.kind === 'ref') return value.at
  return value.kind === 'message' ? (value.at.split('/').at(-1) ?? value.at) : value.id
}

async function rewrite(values: Values, ring: Keyring, value: StoredValue): Promise<Rewritten> {
  if (value.kind === 'ref' ? value.ref.startsWith(sealedTextMark) : keyOf(value) === ring.current) return 'current'
  const next = await sealedAgain(ring, value)
  if (next === undefined) return 'unreadable'
  return (await values.replace(value, next)) === 'replaced' ? 'rewritten' : 'changed'
}

/** The name of the key that a value is under. Undefined: none. */
function keyOf(value: Exclude<StoredValue, StoredRef>): string | undefined {
  switch (value.kind) {
    case 'text': {
      const sealed = sealedBytesOf(value.text)
      return sealed && keyNameOf(sealed)
    }
    case 'outcome':
      return isSealedOutcome(value.outcome) && value.outcome.body ? keyNameOf(value.outcome.body) : undefined
    case 'message':
      return isSealedMessage(value.message) ? keyNameOf(value.message.payload) : undefined
    case 'parked':
      return isSealedMessage(value) ? keyNameOf(value.payload) : undefined
    case 'reference': {
      const sealed = value.sealed === undefined ? undefined : sealedBytesOf(value.sealed)
      return sealed && keyNameOf(sealed)
    }
  }
}

/** Undefined: it does not open. Plain values are read here whatever `plainValues` says: this is how they end. */
async function sealedAgain(ring: Keyring, value: StoredValue): Promise<StoredValue | undefined> {
  const reading: Keyring = { ...ring, plainValues: 'read' }
  if (value.kind === 'ref') return { ...value, ref: hashedRef(ring, value) }
  if (value.kind === 'text') return textAgain(reading, value)
  if (value.kind === 'parked') return parkedAgain(reading, value)
  if (value.kind === 'reference') return referenceAgain(reading, value)
  return value.kind === 'outcome' ? outcomeAgain(reading, value) : messageAgain(reading, value)
}

async function textAgain(ring: Keyring, value: StoredText): Promise<StoredText | undefined> {
  const { column, id } = value
  const place: Place = { column, identity: column === 'downstream-id' ? `position:${id}` : id }
  const opened = await openText(ring, place, value.text)
  if (opened.kind === 'unreadable') return undefined
  return { ...value, text: await sealText(ring, place, opened.text, opened.binding) }
}

async function outcomeAgain(ring: Keyring, value: StoredOutcome): Promise<StoredOutcome | undefined> {
  const opened = await openOutcome(ring, value.id, value.outcome)
  if (opened.kind === 'unreadable') return undefined
  return { ...value, outcome: await sealOutcome(ring, { id: value.id, fence: opened.fence }, opened.outcome) }
}

async function referenceAgain(ring: Keyring, value: StoredReferenceValue): Promise<StoredReferenceValue | undefined> {
  const text = await referenceText(ring, value)
  return text === undefined ? undefined : { ...value, ...(await sealReference(ring, value.id, text)) }
}

async function parkedAgain(ring: Keyring, value: StoredParked): Promise<StoredParked | undefined> {
  const opened = await openParked(ring, value)
  if (opened.kind === 'unreadable') return undefined
  const { headers, payload } = opened
  return { ...value, ...(await sealParked(ring, { id: value.id, headers, payload })) }
}

/** The aggregate stays as it stands in the store: another one would be another place in the order. */
async function messageAgain(ring: Keyring, value: StoredMessage): Promise<StoredMessage | undefined> {
  const { message } = value
  const asRead: Message = { ...message, position: '', lane: 0, attempts: 0, crashes: 0, createdAtMs: 0 }
  const opened = await openMessage(ring, asRead)
  if (opened.unreadable !== undefined) return undefined
  const { headers, payload } = await sealMessage(ring, opened)
  return { ...value, message: { ...message, headers, payload } }
}
