import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../ports/clock.ts'
import { type LedgerEntry, type LedgerPair, mergeLedgers } from './merge.ts'

type Entries = readonly LedgerEntry<number>[]

/** A ledger that knows how far it was read, and whether it was closed. */
function source(entries: Entries, fault?: { after: number; error: Error }) {
  const told = { read: 0, closed: false }
  async function* ledger(): AsyncGenerator<LedgerEntry<number>> {
    try {
      for (const entry of entries) {
        if (fault?.after === told.read) throw fault.error
        told.read += 1
        yield entry
      }
    } finally {
      told.closed = true
    }
  }
  return { ...told, told, ledger: ledger() }
}

function merged(
  ours: AsyncIterable<LedgerEntry<number>>,
  theirs: AsyncIterable<LedgerEntry<number>>,
  over?: AbortSignal,
) {
  const signal = over ?? new AbortController().signal
  return mergeLedgers({ ours, theirs, same: (a: number, b: number) => a === b, clock: systemClock, signal })
}

async function all(pairs: AsyncIterable<LedgerPair<number, number>>): Promise<LedgerPair<number, number>[]> {
  const found: LedgerPair<number, number>[] = []
  for await (const pair of pairs) found.push(pair)
  return found
}

const entries = (...keys: string[]): Entries => keys.map(key => ({ key, value: key.length }))

/** Short keys meet often; surrogates and controls sort where a locale would not put them. */
const key = fc.oneof(
  fc.string({ maxLength: 2, unit: fc.constantFrom('a', 'B', 'ä', '\u{1f600}', '\uffff', '\0') }),
  fc.string(),
)
const ledger = fc
  .dictionary(key, fc.integer({ min: 0, max: 2 }), { maxKeys: 20 })
  .map(record => Object.entries(record).map(([name, value]) => ({ key: name, value })))
  .map(list => list.sort((one, other) => (one.key < other.key ? -1 : 1)))

/** As a person would do it who has both books open. */
function naive(ours: Entries, theirs: Entries): LedgerPair<number, number>[] {
  const keys = [...new Set([...ours, ...theirs].map(entry => entry.key))].sort()
  return keys.map(name => {
    const left = ours.find(entry => entry.key === name)
    const right = theirs.find(entry => entry.key === name)
    if (right === undefined) return { kind: 'missing', key: name, ours: Number(left?.value), theirs: undefined }
    if (left === undefined) return { kind: 'extra', key: name, ours: undefined, theirs: right.value }
    return { kind: left.value === right.value ? 'same' : 'different', key: name, ours: left.value, theirs: right.value }
  })
}

describe('merging two ledgers', () => {
  it('says what a naive comparison says, whatever the ledgers hold', async () => {
    await fc.assert(
      fc.asyncProperty(ledger, ledger, async (ours, theirs) => {
        expect(await all(merged(source(ours).ledger, source(theirs).ledger))).toEqual(naive(ours, theirs))
      }),
      { numRuns: 300 },
    )
  })

  it('ends with the side and the key wherever an order is broken, and closes both sides', async () => {
    await fc.assert(
      fc.asyncProperty(ledger, ledger, fc.nat(), fc.boolean(), async (sound, list, at, isOurs) => {
        fc.pre(list.length > 0)
        // The same key again, anywhere: as good as any key out of order.
        const place = at % list.length
        const broken = [...list.slice(0, place + 1), ...list.slice(place)]
        const sides = { ours: source(isOurs ? broken : sound), theirs: source(isOurs ? sound : broken) }
        const error = await all(merged(sides.ours.ledger, sides.theirs.ledger)).catch((caught: unknown) => caught)
        const name = JSON.stringify(list[place]?.key)
        expect(String(error)).toContain(`${isOurs ? 'ours' : 'theirs'} gave the key ${name} twice`)
        expect([
          sides.ours.told.closed || sides.ours.told.read === 0,
          sides.theirs.told.closed || sides.theirs.told.read === 0,
        ]).toEqual([true, true])
      }),
      { numRuns: 100 },
    )
  })

  it('names the key that came too late', async () => {
    await expect(all(merged(source(entries('a')).ledger, source(entries('b', 'a')).ledger))).rejects.toThrow(
      'theirs gave the key "a" after "b": both sides must come in ascending order of code units',
    )
  })

  it('holds one entry of each side, however long the ledgers are', async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => ({ key: String(n).padStart(4, '0'), value: n }))
    const [ours, theirs] = [source(many), source(many.filter(({ value }) => value % 3 > 0))]
    let pairs = 0
    for await (const pair of merged(ours.ledger, theirs.ledger)) {
      pairs += 1
      expect(ours.told.read - many.findIndex(entry => entry.key === pair.key)).toBeLessThanOrEqual(2)
    }
    expect(pairs).toBe(1_000)
  })

  it('closes both sides when one of them fails, when it is left, and when it is told to end', async () => {
    const failing = [
      source(entries('a', 'b')),
      source(entries('a', 'b'), { after: 1, error: new Error('page 2') }),
    ] as const
    await expect(all(merged(failing[0].ledger, failing[1].ledger))).rejects.toThrow('page 2')
    expect(failing[0].told.closed).toBe(true)

    const left = [source(entries('a', 'b')), source(entries('a', 'b'))] as const
    for await (const _ of merged(left[0].ledger, left[1].ledger)) break
    expect(left.map(({ told }) => told.closed)).toEqual([true, true])

    const ending = new AbortController()
    const stopped = [source(entries('a', 'b')), source(entries('a', 'b'))] as const
    const pairs = merged(stopped[0].ledger, stopped[1].ledger, ending.signal)
    await pairs.next()
    ending.abort(new Error('the worker ends'))
    await expect(pairs.next()).rejects.toThrow('the worker ends')
    expect(stopped.map(({ told }) => told.closed)).toEqual([true, true])
  })

  it('does not wait for a side that hangs when it is told to end', async () => {
    const ending = new AbortController()
    const hanging: AsyncIterable<LedgerEntry<number>> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
    }
    const waiting = all(merged(hanging, source(entries('a')).ledger, ending.signal))
    ending.abort(new Error('the worker ends'))
    await expect(waiting).rejects.toThrow('the worker ends')
  })

  it('says what is wrong with a source that is none', async () => {
    // A caller without a compiler.
    const list = entries('a') as unknown as AsyncIterable<LedgerEntry<number>>
    await expect(all(merged(list, source([]).ledger))).rejects.toThrow('ours did not return an async iterable')
    const keyless = source([{ key: 7 as unknown as string, value: 1 }])
    await expect(all(merged(source([]).ledger, keyless.ledger))).rejects.toThrow(
      'theirs gave an entry whose key must be a string (got 7)',
    )
  })
})
