/** Two ledgers in ascending order of their keys, merged in one pass: one entry of each is held at a time. */
import type { Clock } from '../../ports/clock.ts'
import { LatchkeyError } from '../../ports/errors.ts'
import { within } from '../../engine/store/call.ts'

/** `key`: what both sides call the same entry, such as a reference or a downstream key. */
export interface LedgerEntry<Value> {
  readonly key: string
  readonly value: Value
}

/** `missing`: ours has it and theirs does not. `extra`: theirs has it and ours does not. */
export type LedgerPair<Ours, Theirs> =
  | { readonly kind: 'missing'; readonly key: string; readonly ours: Ours; readonly theirs: undefined }
  | { readonly kind: 'extra'; readonly key: string; readonly ours: undefined; readonly theirs: Theirs }
  | { readonly kind: 'same' | 'different'; readonly key: string; readonly ours: Ours; readonly theirs: Theirs }

export interface MergeOptions<Ours, Theirs> {
  readonly ours: AsyncIterable<LedgerEntry<Ours>>
  readonly theirs: AsyncIterable<LedgerEntry<Theirs>>
  readonly same: (ours: Ours, theirs: Theirs) => boolean
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** A side that yields nothing for this long has stopped: a page takes seconds, an export minutes. */
const entryMsMax = 600_000
/** A generator that hangs in its own code cannot be closed, so the wait for it is short. */
const closeMsMax = 1_000

/**
 * Throws when a side breaks its order: equal keys were paired correctly until then, but a key that was `missing` or `extra` might still have
 * come. Both sides are closed in every case.
 */
export async function* mergeLedgers<Ours, Theirs>(
  options: MergeOptions<Ours, Theirs>,
): AsyncGenerator<LedgerPair<Ours, Theirs>, void> {
  const ours = cursor('ours', options.ours, options)
  const theirs = cursor('theirs', options.theirs, options)
  try {
    let [left, right] = await Promise.all([ours.next(), theirs.next()])
    while (left !== undefined || right !== undefined) {
      if (right === undefined || (left !== undefined && left.key < right.key)) {
        // The conditions leave no other case: at least one side has an entry.
        const { key, value } = left as LedgerEntry<Ours>
        yield { kind: 'missing', key, ours: value, theirs: undefined }
        left = await ours.next()
      } else if (left === undefined || right.key < left.key) {
        yield { kind: 'extra', key: right.key, ours: undefined, theirs: right.value }
        right = await theirs.next()
      } else {
        const kind = options.same(left.value, right.value) ? 'same' : 'different'
        yield { kind, key: left.key, ours: left.value, theirs: right.value }
        ;[left, right] = await Promise.all([ours.next(), theirs.next()])
      }
    }
  } finally {
    await Promise.all([ours.close(), theirs.close()])
  }
}

interface Cursor<Value> {
  next(): Promise<LedgerEntry<Value> | undefined>
  /** Never rejects. */
  close(): Promise<void>
}

function cursor<Value>(
  side: 'ours' | 'theirs',
  source: AsyncIterable<LedgerEntry<Value>>,
  { clock, signal }: Pick<MergeOptions<never, never>, 'clock' | 'signal'>,
): Cursor<Value> {
  if (typeof source?.[Symbol.asyncIterator] !== 'function') {
    throw broken(`${side} did not return an async iterable: return an async generator of { key, value }`)
  }
  const iterator = source[Symbol.asyncIterator]()
  let last: string | undefined
  let ended = false
  return {
    async next() {
      if (ended) return undefined
      const result = await unlessAborted({ side, clock, signal }, iterator.next())
      ended = result.done === true
      if (result.done === true) return undefined
      last = checkedKey(side, result.value?.key, last)
      return result.value
    },
    async close() {
      if (!ended) await within(clock, closeMsMax, async () => iterator.return?.()).catch(() => undefined)
    },
  }
}

function checkedKey(side: string, key: unknown, last: string | undefined): string {
  if (typeof key !== 'string') throw broken(`${side} gave an entry whose key must be a string (got ${String(key)})`)
  if (last === undefined || last < key) return key
  const fault = key === last ? `the key ${shown(key)} twice` : `the key ${shown(key)} after ${shown(last)}`
  throw broken(
    `${side} gave ${fault}: both sides must come in ascending order of code units, each key once (order by key collate "C")`,
  )
}

function broken(message: string): LatchkeyError {
  return new LatchkeyError('misconfigured', `ledger: ${message}`)
}

function shown(key: string): string {
  return JSON.stringify(key.length > 100 ? `${key.slice(0, 100)}…` : key)
}

interface SideOptions extends Pick<MergeOptions<never, never>, 'clock' | 'signal'> {
  readonly side: string
}

async function unlessAborted<T>({ side, clock, signal }: SideOptions, promise: Promise<T>): Promise<T> {
  let stop = (): void => {}
  let cancel = (): void => {}
  const over = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
    cancel = clock.after(entryMsMax, () => reject(broken(`${side} gave nothing for ${entryMsMax} ms`)))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([promise, over])
  } finally {
    cancel()
    signal.removeEventListener('abort', stop)
  }
}
