/** How repetitions are shared out, and in which order their subjects come. */

/**
 * How many repetitions each start makes: five over two are three and two. What a runtime decides in the first seconds of a process stays
 * with it: runs of one process are more alike than runs of two, and the spread of one start says too little about the next.
 */
export function byStart(repetitions: number, starts: number): number[] {
  const count = Math.min(starts, repetitions)
  return Array.from({ length: count }, (_, start) => Math.ceil((repetitions - start) / count))
}

/** Every second repetition runs backwards, so that nobody always comes after the same neighbour. */
export function inTurn<T>(all: readonly T[], repetition: number): readonly T[] {
  return repetition % 2 === 0 ? all : all.toReversed()
}
