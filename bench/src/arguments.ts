/** The command line. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Section } from './section.ts'

export interface Arguments {
  readonly only: readonly string[]
  readonly repetitions: number
  readonly quick: boolean
  readonly check: boolean
  readonly publish: boolean
  readonly readme: boolean
  /** The figures of an earlier run. */
  readonly compare: string | undefined
}

export const usage = `npm run bench -- [options]
  --only a,b         run these sections only
  --repetitions n    at least 5 (default 5)
  --check            compare with bench/goals.json and fail below it
  --compare file     show which medians lie within the spread of an earlier run
  --publish          also write the figures into README.md and docs/bench
  --readme           only rewrite README's figures from docs/bench/figures.json; measures nothing
  --quick            for development: three short repetitions and a small table; not to be quoted`

export function readArguments(
  args: readonly string[],
  known: readonly Pick<Section, 'name' | 'onlyNamed'>[],
): Arguments | { readonly wrong: string } {
  const sections = known.map(({ name }) => name)
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string' },
        repetitions: { type: 'string' },
        quick: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        publish: { type: 'boolean', default: false },
        readme: { type: 'boolean', default: false },
        compare: { type: 'string' },
      },
    })
    const only = values.only?.split(',') ?? known.filter(({ onlyNamed }) => onlyNamed !== true).map(({ name }) => name)
    const unknown = only.find(name => !sections.includes(name))
    if (unknown !== undefined) return { wrong: `unknown section "${unknown}": choose from ${sections.join(', ')}` }
    const least = values.quick ? 1 : 5
    const repetitions = Number(values.repetitions ?? (values.quick ? 3 : 5))
    if (!(Number.isInteger(repetitions) && repetitions >= least))
      return { wrong: `--repetitions must be an integer of at least ${least}` }
    if (values.publish && (values.quick || values.only !== undefined)) {
      return { wrong: '--publish needs a whole run: remove --quick and --only' }
    }
    const { quick, check, publish, readme, compare } = values
    return {
      only,
      repetitions,
      quick,
      check,
      publish,
      readme,
      compare: compare === undefined ? undefined : fromCaller(compare),
    }
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) }
  }
}

/** npm runs the benchmark in its own folder; INIT_CWD is where the command was typed. */
function fromCaller(path: string): string {
  return resolve(process.env['INIT_CWD'] ?? '.', path)
}
