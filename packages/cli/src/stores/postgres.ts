/** PostgreSQL through `pg`. */
import type { Pool, PoolConfig } from 'pg'
import { postgresMigrations, postgresStore } from 'latchkey/stores/postgres'
import { masked } from '../config/secrets.ts'
import { postgresChecks } from '../doctor/postgres/checks.ts'
import type { Context } from '../program/context.ts'
import { loadDriver, memberOf } from './driver.ts'
import type { AppliedStep, OpenedStore } from './opened.ts'

/** One person's commands: a bulk act uses a few at once. */
const connections = 4

export async function openPostgres(context: Context, url: string): Promise<OpenedStore> {
  const schema = context.settings.of.schema.value ?? 'latchkey'
  const pool = await openPool(context, url)
  const store = postgresStore({ pool, schema })
  return {
    kind: 'postgres',
    address: masked(url),
    store,
    tables: {
      steps: postgresMigrations(schema),
      applied: () => appliedSteps(pool, schema),
      migrate: options => store.migrate(options),
    },
    checks: postgresChecks({ pool, schema, store, clock: context.clock }),
    close: () => pool.end(),
  }
}

async function openPool({ cwd, timeoutMs }: Context, url: string): Promise<Pool> {
  const Opened = memberOf(await loadDriver(cwd, ['pg'], 'PostgreSQL'), 'Pool') as new (options: PoolConfig) => Pool
  const pool = new Opened({
    connectionString: url,
    max: connections,
    application_name: 'latchkey-cli',
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  })
  // The next statement reports it.
  pool.on('error', () => {})
  return pool
}

async function appliedSteps(pool: Pool, schema: string): Promise<readonly AppliedStep[]> {
  const quoted = `"${schema.replaceAll('"', '""')}".migrations`
  const { rows: found } = await pool.query<{ there: boolean }>('select to_regclass($1) is not null as there', [quoted])
  if (found[0]?.there !== true) return []
  const { rows } = await pool.query<{ version: number; name: string; applied_at: Date }>(
    `select version, name, applied_at from ${quoted} order by version`,
  )
  return rows.map(({ version, name, applied_at }) => ({ version, name, appliedAtMs: applied_at.getTime() }))
}
