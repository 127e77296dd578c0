/** Numbers out of repetitions. */

/** One measured figure: the median of the repetitions, and how far they lie apart. */
export interface Figure {
  readonly value: number
  readonly min: number
  readonly max: number
  readonly unit: string
  /** A sentence for people. */
  readonly what: string
}

export function figure(values: readonly number[], unit: string, what: string): Figure {
  return { value: median(values), min: Math.min(...values), max: Math.max(...values), unit, what }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

export function quantile(sorted: ArrayLike<number>, q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

/** Each value over its partner of the same repetition: what disturbed one of them disturbed both. */
export function pairwise(
  over: readonly number[],
  under: readonly number[],
  combine: (a: number, b: number) => number = (a, b) => a / b,
): number[] {
  return over.map((value, index) => combine(value, under[index] ?? Number.NaN))
}
