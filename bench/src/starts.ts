/**
 * What a runtime decides in the first seconds of a process stays with it: runs of one process are more alike than runs of two, and
 * the spread of one start says too little about the next. So the repetitions of a section are shared out over several starts.
 */

/** How many repetitions each start makes: five over two are three and two. */
export function byStart(repetitions: number, starts: number): number[] {
  const count = Math.min(starts, repetitions)
  return Array.from({ length: count }, (_, start) => Math.ceil((repetitions - start) / count))
}
