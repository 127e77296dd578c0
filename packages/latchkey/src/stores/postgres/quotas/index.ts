/** Tokens that processes share, and what a scope has stored. */
import type { Quotas, ScopeRows } from '../../../ports/faculties/quotas.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { leasedOf } from '../../shared/token-bucket.ts'
import type { RunStatement } from '../connection/statement.ts'
import { readable } from '../sql/columns.ts'
import { inBucketOf, milliseconds, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

export function postgresQuotas(sql: Dialect, run: RunStatement): Quotas {
  const texts = {
    lease: leaseStatement(sql),
    giveBack: `update ${sql.buckets} b set tokens = least($2::float8, b.tokens + $3::float8) where b.bucket = $1::uuid`,
    prune: pruneStatement(sql),
    openKeys: openKeysStatement(sql),
    storedBytes: storedBytesStatement(sql),
  }
  return {
    async lease({ bucket, perMinute, tokens }) {
      const [row] = await run<Debited>(texts.lease, [bucket, perMinute, tokens])
      return leasedOf(Number(row?.granted), Number(row?.tokens), perMinute)
    },
    async giveBack({ bucket, perMinute, tokens }) {
      await run(texts.giveBack, [bucket, perMinute, tokens])
    },
    prune: async ({ limit }) => (await run(texts.prune, [limit])).length,
    async openKeys({ max, ...rows }) {
      const [row] = await run<{ readonly open: RawNumber }>(texts.openKeys, [...valuesOf(rows), max])
      return Number(row?.open)
    },
    async storedBytes(rows) {
      const [row] = await run<Measured>(texts.storedBytes, valuesOf(rows))
      const measured = Number(row?.measured)
      return measured === 0 ? 0 : Math.round((Number(row?.bytes) * Number(row?.rows)) / measured)
    },
  }
}

type Debited = { readonly granted: RawNumber; readonly tokens: RawNumber }
type Measured = { readonly bytes: RawNumber; readonly measured: RawNumber; readonly rows: RawNumber }

function valuesOf({ scope, operation }: ScopeRows): readonly (string | null)[] {
  return [readable(scope), operation ?? null]
}

/** When a bucket of `$2` that holds so many tokens is full again. */
const fullAfter = (tokens: string) => milliseconds(`((($2::float8 - ${tokens}) * float8 '60000') / $2::float8)`)

/**
 * Atomic: the row is locked, filled up to now and debited by one statement; callers that wait for its lock see what the one before left. The time is
 * that of the row proposed, and may be a little older than the row's own.
 */
function leaseStatement({ buckets, now }: Dialect): string {
  const fromFull = 'least($2::float8, $3::float8)'
  return `insert into ${buckets} as b (bucket, tokens, granted, filled_at, full_at)
    values ($1::uuid, $2::float8 - ${fromFull}, ${fromFull}::integer, ${now}, ${now} + ${fullAfter(`($2::float8 - ${fromFull})`)})
    on conflict (bucket) do update set (tokens, granted, filled_at, full_at) = (
      select f.tokens - g.granted, g.granted::integer, f.at, f.at + ${fullAfter('(f.tokens - g.granted)')}
      from (select greatest(b.filled_at, excluded.filled_at) as at, least($2::float8, b.tokens
          + greatest(extract(epoch from (excluded.filled_at - b.filled_at))::float8, float8 '0') * $2::float8 / float8 '60') as tokens) f
      cross join lateral (select least($3::float8, pg_catalog.floor(f.tokens)) as granted) g)
    returning b.granted, b.tokens`
}

/** A bucket that is not there is full, so that a lease which waits for the lock finds the same as before. */
function pruneStatement({ buckets, now }: Dialect): string {
  return `delete from ${buckets} b where b.bucket = any(array(
      select p.bucket from ${buckets} p where p.full_at <= (select ${now}) limit $1::integer for update skip locked))
    returning b.bucket`
}

/** Rows of the index entry that the scope shares with others. In a table of 25 million rows with many scopes an entry has as many. */
const rowsReadMax = 100_000
/** Of the scope: beyond it their mean is taken for the rest. */
const rowsMeasuredMax = 10_000

/** Limited before the scope is compared, so that no table is so large that this reads all of it. */
function rowsOfScope({ keys }: Dialect, columns: string): string {
  return `(select ${columns} from ${keys} k where ${inBucketOf('$1::text')} limit ${rowsReadMax}) k where k.scope = $1::text`
}

export function openKeysStatement(sql: Dialect): string {
  return `select pg_catalog.count(*) as open from (
      select from ${rowsOfScope(sql, 'k.scope, k.operation, k.state')} and k.state <> ${state.completed}
        and ($2::text is null or k.operation = $2::text) limit $3::integer) k`
}

/** Lengths are read from the row: nothing large is fetched. */
export function storedBytesStatement(sql: Dialect): string {
  return `with of_scope as materialized (
      select k.id, k.operation, k.packed from ${rowsOfScope(sql, 'k.id, k.scope, k.operation, pg_catalog.octet_length(k.outcome) as packed')}
    ), measured as (
      select case when $2::text is null or m.operation = $2::text then coalesce(m.packed, 0)::float8
        + coalesce((select pg_catalog.sum(pg_catalog.octet_length(o.headers) + coalesce(pg_catalog.octet_length(o.body), 0))
          from ${sql.outcomes} o where o.id = m.id), 0)::float8
        + coalesce((select pg_catalog.octet_length(i.input) from ${sql.inputs} i where i.id = m.id), 0)::float8
        else float8 '0' end as bytes
      from (select s.id, s.operation, s.packed from of_scope s limit ${rowsMeasuredMax}) m
    )
    select coalesce(pg_catalog.sum(m.bytes), float8 '0') as bytes, pg_catalog.count(*) as measured,
      (select pg_catalog.count(*) from of_scope) as rows
    from measured m`
}
