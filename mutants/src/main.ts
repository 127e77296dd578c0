// npm run mutants                        seeds every known bug into a private copy of this tree, one at a time, and expects the
//                                        tests named for it to fail; prints a table, and exits with 1 if a mutant survives
// npm run mutants -- --only "some name"  the mutants whose names contain this
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { installPostgres } from '../../test/servers/install-postgres.ts'
import { findPostgres, startPostgres } from '../../test/servers/postgres.ts'
import { announceServer, MAY_INSTALL, needsServer } from '../../test/servers/shared-server.ts'
import { mutants } from './all.ts'
import type { Mutant, NamedTest } from './mutant.ts'
import { copyTree } from './private-copy.ts'
import { endAll, runTests } from './run-tests.ts'
import { type Trial, mutated, tryMutant } from './try-mutant.ts'
import { describeVerdict, verdictOn } from './vitest-report.ts'

/** Many tests are about races, and an overloaded machine finds fewer of them. */
const lanes = 2
/** All named tests, once, without a bug. */
const baselineLimitMs = 900_000

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } })
const root = fileURLToPath(new URL('../..', import.meta.url))
const chosen = mutants.filter(({ name }) => name.includes(values.only))
if (chosen.length === 0) {
  throw new Error(
    `no mutant's name contains "${values.only}"; choose from: ${mutants.map(({ name }) => name).join('; ')}`,
  )
}
// Before anything is started, so that a stale patch is reported at once.
for (const mutant of chosen) {
  mutated(mutant, new Map(mutant.patches.map(({ file }) => [file, readFileSync(join(root, file), 'utf8')])))
}

// The named tests start the other servers themselves, and install them as `npm test` does.
process.env[MAY_INSTALL] ??= '1'
const directory = mkdtempSync(join(tmpdir(), 'latchkey-mutants-'))
const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(name, () => {
    endAll()
    remove()
    process.exit(1)
  })
}
const stopServer = await serve(chosen.flatMap(({ caughtBy }) => caughtBy))
try {
  process.exitCode = await tryAll(chosen)
} finally {
  await stopServer()
  remove()
}

/** One server for all runs; each suite has its own database. */
async function serve(tests: readonly NamedTest[]): Promise<() => Promise<void>> {
  if (!tests.some(({ path }) => needsServer(path))) return async () => {}
  const found = findPostgres()
  const installed = found.kind === 'missing' ? installPostgres() : undefined
  if (found.kind === 'missing' && installed?.kind === 'refused') throw new Error(`${found.why}; ${installed.why}`)
  const server = await startPostgres()
  announceServer(server.url)
  return () => server.stop()
}

async function tryAll(queue: readonly Mutant[]): Promise<number> {
  const copies = Array.from({ length: Math.min(lanes, queue.length) }, (_, lane) => join(directory, `copy-${lane}`))
  for (const copy of copies) copyTree(root, copy)
  const [first = ''] = copies
  await expectGreen(first, uniqueTests(queue))
  const trials = await inLanes(copies, queue)
  console.log(tableOf(trials))
  const survivors = trials.filter(({ survived }) => survived !== undefined)
  for (const { mutant, survived } of survivors) console.error(`\nSURVIVED ${mutant.name}\n  ${survived}`)
  console.log(`\n${trials.length - survivors.length} caught, ${survivors.length} survived`)
  return survivors.length === 0 ? 0 : 1
}

function uniqueTests(queue: readonly Mutant[]): NamedTest[] {
  const tests = queue.flatMap(({ caughtBy }) => caughtBy)
  return [...new Map(tests.map(named => [`${named.path} ${named.test}`, named])).values()]
}

/** A test that fails without the bug proves nothing, and neither does the name of a test that does not exist. */
async function expectGreen(copy: string, tests: readonly NamedTest[]): Promise<void> {
  console.error(`without a bug: ${tests.length} named tests`)
  const ran = await runTests(copy, tests, baselineLimitMs)
  if (ran.kind === 'cut-short') throw new Error(`the named tests ${ran.why}`)
  const lines = tests.flatMap(named => {
    const verdict = verdictOn(named, ran.report)
    return verdict.kind === 'passed' ? [] : [describeVerdict(verdict, named)]
  })
  if (lines.length > 0) throw new Error(`tests fail without a bug; make these pass first:\n${lines.join('\n')}`)
}

async function inLanes(copies: readonly string[], queue: readonly Mutant[]): Promise<Trial[]> {
  const waiting = [...queue]
  const trials = new Map<Mutant, Trial>()
  async function lane(copy: string): Promise<void> {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const trial = await tryMutant(copy, mutant)
      console.error(`${trial.survived === undefined ? 'caught  ' : 'SURVIVED'} ${mutant.name}`)
      trials.set(mutant, trial)
    }
  }
  await Promise.all(copies.map(lane))
  return queue.flatMap(mutant => trials.get(mutant) ?? [])
}

function tableOf(trials: readonly Trial[]): string {
  const rows = trials.map(({ mutant, survived, seconds }) => {
    const by = mutant.caughtBy.map(({ path, test }) => `${test} (\`${path}\`)`).join('<br>')
    return `| ${mutant.name} | ${survived === undefined ? by : '**SURVIVED**'} | ${seconds.toFixed(1)} |`
  })
  return ['| mutant | caught by | seconds |', '| --- | --- | ---: |', ...rows].join('\n')
}
