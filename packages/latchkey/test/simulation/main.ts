/** `tsx main.ts --seeds 100000 --from 1`: many seeds; `--seed 7`: one that failed. Ends with 1 if a rule was broken. */
import { parseArgs } from 'node:util'
import { simulateMany } from './many.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '10000' },
    from: { type: 'string', default: '1' },
  },
})
const { seed, from, seeds: many } = values
const which = seed === undefined ? { from: Number(from), seeds: Number(many) } : { from: Number(seed), seeds: 1 }
const startedAtMs = performance.now()
const { failure, seen, steps, seeds } = await simulateMany(which)
const tookMs = performance.now() - startedAtMs
for (const [what, times] of [...seen].sort(([left], [right]) => (left < right ? -1 : 1))) console.log(times, what)
console.log(`${seeds} seeds, ${steps} steps, ${(tookMs / 1_000).toFixed(1)} s`)
if (failure !== undefined) console.log(failure)
process.exit(failure === undefined ? 0 : 1)
