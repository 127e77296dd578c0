/** An answer that was stored and then lost in a crash would be executed again. */
import { type Check, type Finding, ok } from '../finding.ts'
import type { PostgresUnderCheck } from './under-check.ts'

interface Setting {
  readonly name: string
  readonly bad: readonly string[]
  readonly costs: string
}

const settings: readonly Setting[] = [
  { name: 'synchronous_commit', bad: ['off'], costs: 'a crash of the server loses answers that clients have had' },
  { name: 'fsync', bad: ['off'], costs: 'a crash of the machine can destroy the database' },
  { name: 'full_page_writes', bad: ['off'], costs: 'a crash of the machine can leave half-written pages' },
]

export function durabilityCheck({ pool }: Pick<PostgresUnderCheck, 'pool'>): Check {
  return {
    name: 'durability',
    async look() {
      const names = settings.map(({ name }) => name)
      const { rows } = await pool.query<{ name: string; setting: string }>(
        'select name, setting from pg_catalog.pg_settings where name = any ($1)',
        [names],
      )
      const found = settings.flatMap(setting => {
        const value = rows.find(({ name }) => name === setting.name)?.setting ?? ''
        return setting.bad.includes(value) ? [unsafe(setting, value)] : []
      })
      return found.length > 0 ? found : ok(rows.map(({ name, setting }) => `${name} ${setting}`).join(', '))
    },
  }
}

function unsafe({ name, costs }: Setting, value: string): Finding {
  const isOfSession = name === 'synchronous_commit'
  return {
    verdict: 'FAIL',
    text: `${name} is ${value}: ${costs}`,
    cure: isOfSession
      ? 'set it to on for the role and for the server'
      : 'set it to on, in postgresql.conf too, and reload',
    sql: [
      ...(isOfSession ? ['alter role current_user reset synchronous_commit;'] : []),
      `alter system set ${name} = on;`,
      'select pg_reload_conf();',
    ],
  }
}
