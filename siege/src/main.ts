/**
 * `npm run siege -- --seconds 60 --seed 7`: one application, enemies that attack it, and innocent tenants beside them that must not
 * notice. Exit code 0: passed, 1: failed, 2: bad input.
 */
import { installPostgres } from '../../test/servers/install-postgres.ts'
import { findPostgres } from '../../test/servers/postgres.ts'
import { findRedis, installMissingRedis } from '../../test/servers/redis/redis-binary.ts'
import { check } from './check.ts'
import { BadInput, type Flags, readFlags } from './flags.ts'
import { reportLines } from './report.ts'
import { run } from './run.ts'

try {
  process.exitCode = await siege(readFlags(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof BadInput)) throw error
  console.error(error.message)
  process.exitCode = 2
}

async function siege(flags: Flags): Promise<number> {
  console.log(`${flags.store}, seed ${flags.seed}, ${flags.seconds} s, enemies: ${flags.enemies.join(', ')}`)
  if (flags.store !== 'redis') needPostgres()
  if (flags.store !== 'postgres') needRedis()
  const evidence = await run(flags)
  const violations = check(evidence)
  console.log(reportLines(evidence, violations))
  return violations.length === 0 ? 0 : 1
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
