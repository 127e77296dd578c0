/** Reproducible randomness: the same seed and label give the same numbers. */
export interface Random {
  /** From 0 up to 1. */
  next(): number
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
}

/** Each part of a run draws from a stream of its own, so that one part's speed does not change another's choices. */
export function randomFrom(seed: number, label: string): Random {
  let state = seed >>> 0
  for (const character of label) state = (Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01000193) + 1) >>> 0
  // Mulberry32: 32 bits of state are plenty for choosing faults.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (low, high) => low + Math.floor(next() * (high - low + 1)),
    chance: probability => next() < probability,
    pick(from) {
      const picked = from[Math.floor(next() * from.length)]
      if (picked === undefined) throw new Error('nothing to pick from')
      return picked
    },
  }
}
