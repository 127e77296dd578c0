/**
 * `npm run torture -- --seconds 120 --seed 7`: real processes, a real PostgreSQL, or with `--store redis` a real Redis, or with `--store tiered`
 * both, Redis as a cache in front, and a nemesis that breaks them; then a checker that knows nothing of Latchkey. Exit code 0: passed, 1: failed, 2: bad input, 3: inconclusive.
 */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installPostgres } from '../../test/servers/install-postgres.ts'
import { findPostgres } from '../../test/servers/postgres.ts'
import { findRedis, installMissingRedis } from '../../test/servers/redis/redis-binary.ts'
import { check } from './check/check.ts'
import { readEvidence } from './check/read-evidence.ts'
import { BadInput, type Flags, readFlags } from './flags.ts'
import { exitCodes, reportLines } from './report.ts'
import { run } from './run.ts'

try {
  process.exitCode = await torture(readFlags(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof BadInput)) throw error
  console.error(error.message)
  process.exitCode = 2
}

async function torture(flags: Flags): Promise<number> {
  const directory = flags.check ?? openDirectory(flags.dir)
  if (flags.check === undefined) {
    const terms = `dedup ${flags.dedup ? 'on' : 'off'}, webhooks ${flags.webhooks ? 'on' : 'off'}`
    console.log(`${flags.store}, seed ${flags.seed}, ${flags.seconds} s, ${terms}, histories in ${directory}`)
    needPostgres()
    if (flags.store !== 'postgres') needRedis()
    await run(flags, directory)
  }
  const report = check(readEvidence(directory))
  console.log(reportLines(report))
  return exitCodes[report.verdict]
}

/** Like the tests: finds PostgreSQL, or installs it where that is possible. */
function needPostgres(): void {
  const found = findPostgres()
  if (found.kind === 'found') return
  const installation = installPostgres()
  if (installation.kind === 'refused') throw new BadInput(`no PostgreSQL: ${found.why}; ${installation.why}`)
}

function needRedis(): void {
  installMissingRedis()
  const found = findRedis()
  if (found.kind === 'missing') throw new BadInput(`no Redis: ${found.why}`)
}

function openDirectory(given: string | undefined): string {
  if (given === undefined) return mkdtempSync(join(tmpdir(), 'latchkey-torture-'))
  mkdirSync(given, { recursive: true })
  return given
}
