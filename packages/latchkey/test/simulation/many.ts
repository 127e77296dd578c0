/** Seeds one after the other, until one breaks a rule. */
import { simulate } from './simulate.ts'

export interface Many {
  /** The seed, the rule, and the end of its trace. */
  readonly failure: string | undefined
  readonly seen: ReadonlyMap<string, number>
  readonly seeds: number
  readonly steps: number
}

/** What happened last; the whole trace of a seed is a few thousand lines. */
const traceLines = 80

export async function simulateMany({ from, seeds }: { from: number; seeds: number }): Promise<Many> {
  const seen = new Map<string, number>()
  let steps = 0
  for (let seed = from; seed < from + seeds; seed++) {
    const run = await simulate(seed)
    steps += run.steps
    for (const [what, times] of run.seen) seen.set(what, (seen.get(what) ?? 0) + times)
    if (run.violation !== undefined)
      return { failure: await describeFailure(seed, run.violation), seen, seeds: seed - from + 1, steps }
    // Between two seeds the real event loop gets its turn: a test runner talks to its workers there.
    if (seed % 20 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  return { failure: undefined, seen, seeds, steps }
}

/** The same again, and this time with a trace: a seed decides everything. */
async function describeFailure(seed: number, violation: string): Promise<string> {
  const { violation: secondly, trace } = await simulate(seed, { traced: true })
  const same = secondly === violation ? '' : `\nNOT THE SAME AGAIN: ${String(secondly)}`
  return [`seed ${seed}: ${violation}${same}`, ...trace.slice(-traceLines), `seed ${seed}: ${violation}`].join('\n')
}
