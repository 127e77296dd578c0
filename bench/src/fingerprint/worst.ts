// npm run worst --workspace @latchkey/bench -- --seed 7
// looks for the JSON body whose fingerprint costs most, compared with decoding and parsing it, and ends with 1 above the limit
import { parseArgs } from 'node:util'
import type { FingerprintRequest } from './measure.ts'
import { changed, chanceOf, randomRecipe, type Recipe, written } from './corpus.ts'

/** Above it, a client could buy work with a body. */
const ratioMax = 10
const bodyBytes = 100_000
/** So many at random, and then so many rounds in which the worst are changed a little. */
const firstCount = 400
const rounds = 12
const survivors = 20
const changesEach = 5

interface Measured {
  readonly recipe: Recipe
  readonly ratio: number
}

// By its path, as bundle.ts does it: no public subpath computes a fingerprint alone.
const code = new URL('../../../packages/latchkey/src/engine/fingerprint/fingerprint.ts', import.meta.url)
const { fingerprintRequest } = (await import(code.href)) as { fingerprintRequest: FingerprintRequest }
const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' } } })
const chance = chanceOf(Number(values.seed))
const parts = { method: 'POST', path: '/orders', query: '', mediaType: 'application/json', header: () => undefined }

/** The fastest of a few: what disturbs a run makes it slower, and says nothing about the code. */
function fastestMs(times: number, run: () => unknown): number {
  let fastest = Infinity
  for (let time = 0; time < times; time++) {
    const startedAt = performance.now()
    run()
    fastest = Math.min(fastest, performance.now() - startedAt)
  }
  return fastest
}

/** Parsing starts from the same bytes: a server has nothing else. */
function measure(recipe: Recipe, times: number): Measured {
  const body = Buffer.from(written(recipe, bodyBytes))
  const parseMs = fastestMs(times, () => JSON.parse(body.toString()))
  return { recipe, ratio: fastestMs(times, () => fingerprintRequest({ ...parts, body })) / parseMs }
}

function worstOf(measured: readonly Measured[]): Measured[] {
  return measured.toSorted((a, b) => b.ratio - a.ratio).slice(0, survivors)
}

// Compiled before it counts.
for (let warm = 0; warm < firstCount; warm++) measure(randomRecipe(chance), 2)
let worst = worstOf(Array.from({ length: firstCount }, () => measure(randomRecipe(chance), 5)))
for (let round = 0; round < rounds; round++) {
  const offspring = worst.flatMap(({ recipe }) => Array.from({ length: changesEach }, () => changed(recipe, chance)))
  worst = worstOf([...worst, ...offspring.map(recipe => measure(recipe, 5))])
}
// Measured anew and longer: among many, the unluckiest measurement would win.
const final = worstOf(worst.map(({ recipe }) => measure(recipe, 40)))
for (const { recipe, ratio } of final.slice(0, 10)) console.log(`${ratio.toFixed(1)} ×  ${JSON.stringify(recipe)}`)
const found = final[0]?.ratio ?? 0
console.log(`worst: ${found.toFixed(1)} × JSON.parse of the same bytes; the limit is ${ratioMax} (seed ${values.seed})`)
if (found > ratioMax) process.exitCode = 1
