/** What the command line asks for. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface Arguments {
  readonly only: readonly string[]
  readonly repetitions: number
  readonly quick: boolean
  readonly check: boolean
  readonly publish: boolean
  /** The figures of an earlier run. */
  readonly compare: string | undefined
}

export const usage = `npm run bench -- [options]
  --only a,b         these sections alone
  --repetitions n    at least 5 (default 5)
  --check            compares with bench/goals.json and fails below it
  --compare file     says which medians lie within the spread of an earlier run, and which do not
  --publish          also rewrites the benchmark's place in README.md and the files in docs/bench
  --quick            for development: three short repetitions, a small table, nothing that may be quoted`

export function readArguments(
  args: readonly string[],
  sections: readonly string[],
): Arguments | { readonly wrong: string } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string' },
        repetitions: { type: 'string' },
        quick: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        publish: { type: 'boolean', default: false },
        compare: { type: 'string' },
      },
    })
    const only = values.only?.split(',') ?? sections
    const unknown = only.find(name => !sections.includes(name))
    if (unknown !== undefined) return { wrong: `there is no section "${unknown}": choose from ${sections.join(', ')}` }
    const least = values.quick ? 1 : 5
    const repetitions = Number(values.repetitions ?? (values.quick ? 3 : 5))
    if (!(Number.isInteger(repetitions) && repetitions >= least))
      return { wrong: `--repetitions takes a number from ${least}` }
    if (values.publish && (values.quick || values.only !== undefined)) {
      return { wrong: '--publish wants a whole run: leave --quick and --only out' }
    }
    const { quick, check, publish, compare } = values
    return {
      only,
      repetitions,
      quick,
      check,
      publish,
      compare: compare === undefined ? undefined : fromCaller(compare),
    }
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) }
  }
}

/** npm runs the benchmark in its own folder, and tells where the command was given. */
function fromCaller(path: string): string {
  return resolve(process.env['INIT_CWD'] ?? '.', path)
}
