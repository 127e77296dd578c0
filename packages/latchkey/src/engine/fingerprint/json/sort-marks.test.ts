/** How much work sorting names is: counted in reads, because a clock would measure the machine. */
import { describe, expect, it } from 'vitest'
import { type JsonCursor, openCursor } from './cursor.ts'
import { markSize, pushMark } from './member-order.ts'
import { readString } from './scalar.ts'
import { sortMarks } from './sort-marks.ts'

/** A cursor with a mark for each name, as `readObject` leaves it. */
function marked(names: readonly string[]): JsonCursor {
  const cursor = openCursor(Buffer.from(names.map(name => JSON.stringify(name)).join('')), 1)
  for (let i = 0; i < names.length; i++) {
    const start = cursor.length
    if (!readString(cursor)) throw new Error('the names are not JSON')
    pushMark(cursor, start, 0)
  }
  return cursor
}

/** The same object, calling `onRead` for every element that is read and every method that is used. */
function counted<T extends object>(target: T, onRead: () => void): T {
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name)
      onRead()
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Sorts the names and returns how often a byte or a word of them was read. */
function readsOf(names: readonly string[]): number {
  const cursor = marked(names)
  let reads = 0
  const watched = {
    ...cursor,
    out: counted(cursor.out, () => reads++),
    outWords: counted(cursor.outWords, () => reads++),
  }
  const sorted = sortMarks(watched, { first: 0, count: names.length, size: markSize }) ?? []
  const inOrder = Array.from(sorted.slice(0, names.length), mark => names[mark / markSize])
  expect(inOrder).toEqual(names.toSorted())
  return reads
}

const beginnings = {
  none: '',
  'letters alike': 'a'.repeat(64),
  'escapes alike': '\n'.repeat(64),
  'control characters alike': '\u0001'.repeat(64),
  'accents alike': '\u00e9'.repeat(32),
}

const orders = {
  backwards: (i: number, count: number) => count - i,
  shuffled: (i: number, count: number) => (i * 7919) % (count + 1),
  'every other one': (i: number, count: number) => (i % 2 === 0 ? i : count * 2 - i),
}

describe('the work of sorting names', () => {
  for (const [beginning, prefix] of Object.entries(beginnings)) {
    for (const [order, place] of Object.entries(orders)) {
      it.each([2, 8, 9, 32, 100, 1_000])(`grows with n log n: %i names, ${beginning}, ${order}`, count => {
        const names = Array.from({ length: count }, (_, i) => prefix + String(place(i, count)).padStart(6, '0'))
        const bytes = names.reduce((sum, name) => sum + Buffer.byteLength(JSON.stringify(name)), 0)
        // Up to eight names are compared three times each; of more, what they share is read once. An escape of two bytes takes
        // about ten reads on both sides, and so do the bytes behind it at each of the n log n steps.
        expect(readsOf(names)).toBeLessThanOrEqual(10 * bytes + 10 * count * Math.ceil(Math.log2(count)))
      })
    }
  }
})
