/**
 * `npm run bench`: what Latchkey costs on this machine, as ratios to the same server without it.
 *
 *   npm run bench -- --only work,saturation,replay --repetitions 3 --seconds 3
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startPostgres } from '../../test/servers/postgres.ts'
import { measureOverhead, type SubjectResult } from './overhead.ts'
import { scenarios } from './subjects.ts'
import { faults, table } from './table.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: scenarios.map(({ name }) => name).join(',') },
    repetitions: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
  },
})
const repetitions = atLeast(Number(values.repetitions), 3, '--repetitions')
const seconds = atLeast(Number(values.seconds), 1, '--seconds')
const chosen = scenarios.filter(({ name }) => values.only.split(',').includes(name))
if (chosen.length === 0) fail(`--only takes ${scenarios.map(({ name }) => name).join(', ')}, and got ${values.only}`)

const postgres = await startPostgres()
const results: Record<string, SubjectResult[]> = {}
try {
  for (const scenario of chosen) {
    const measured = await measureOverhead({ scenario, repetitions, seconds, postgresUrl: postgres.url })
    results[scenario.name] = measured
    console.log(table(scenario.title, measured))
  }
} finally {
  await postgres.stop()
}

const all = Object.values(results).flat()
for (const settings of new Set(all.map(result => result.settings).filter(text => text !== ''))) console.log(settings)
const conditions = { node: process.version, cores: cpus().length, repetitions, seconds }
const file = fileURLToPath(new URL('../results/overhead.json', import.meta.url))
mkdirSync(fileURLToPath(new URL('../results', import.meta.url)), { recursive: true })
writeFileSync(file, `${JSON.stringify({ conditions, results }, null, 2)}\n`)
console.log(
  `Node ${conditions.node}, ${conditions.cores} cores shared by load, application and database; ${repetitions} × ${seconds} s each; written to ${file}`,
)

const wrong = faults(all)
for (const text of wrong) console.error(text)
process.exitCode = wrong.length === 0 ? 0 : 1

function atLeast(value: number, least: number, name: string): number {
  return Number.isFinite(value) && value >= least ? value : fail(`${name} takes a number from ${least}`)
}

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}
