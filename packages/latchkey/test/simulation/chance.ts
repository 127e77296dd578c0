/** All randomness of a run, from its seed: mulberry32, small and the same everywhere. */

export interface Chance {
  /** In [0, 1). */
  next(): number
  happens(probability: number): boolean
  /** In [from, to). */
  between(from: number, to: number): number
  /** An integer in [from, to]. */
  whole(from: number, to: number): number
  pick<T>(values: readonly [T, ...T[]]): T
  /** In UUID shape. */
  id(): string
}

export function chance(seed: number): Chance {
  // Neighbouring seeds must not begin alike.
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ (seed >>> 13)

  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const hex = () =>
    Math.floor(next() * 2 ** 32)
      .toString(16)
      .padStart(8, '0')
  const whole = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    whole,
    happens: probability => next() < probability,
    between: (from, to) => from + next() * (to - from),
    // The index is inside the list, and the list has a first element.
    pick: values => values[whole(0, values.length - 1)] ?? values[0],
    id() {
      const [a, b, c, d] = [hex(), hex(), hex(), hex()]
      return `${a}-${b.slice(0, 4)}-${b.slice(4)}-${c.slice(0, 4)}-${c.slice(4)}${d}`
    },
  }
}
