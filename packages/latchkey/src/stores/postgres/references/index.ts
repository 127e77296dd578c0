/** Names under which rows are found. */
import type { NewReference, References, StoredReference } from '../../../ports/faculties/references.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { type RunStatement, runIn } from '../connection/statement.ts'
import { epochMs, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

interface ReferenceRow {
  readonly key_id: string
  readonly ref: string
  readonly sealed: string | null
  readonly at_ms: RawNumber
}

export function postgresReferences<Tx>(sql: Dialect, run: RunStatement): References<Tx> {
  const texts = { add: addStatement(sql), addIn: addInStatement(sql), find: findStatement(sql), of: ofStatement(sql) }
  return {
    async add({ id, fence, claimId }, references) {
      const rows = await run(texts.add, [id, fence, claimId, ...valuesOf(references)])
      return rows.length === 1 ? 'written' : 'claim-lost'
    },
    async addIn(tx, id, references) {
      await runIn(tx, sql)(texts.addIn, [id, ...valuesOf(references)])
    },
    find: async (index, { limit }) => (await run<ReferenceRow>(texts.find, [index, limit])).map(referenceOf),
    of: async id => (await run<ReferenceRow>(texts.of, [id])).map(referenceOf),
  }
}

function valuesOf(references: readonly NewReference[]): readonly unknown[] {
  return [references.map(({ index }) => index), references.map(({ sealed }) => sealed ?? null)]
}

function referenceOf({ key_id, ref, sealed, at_ms }: ReferenceRow): StoredReference {
  return { id: key_id, index: ref, sealed: sealed ?? undefined, atMs: Math.floor(Number(at_ms)) }
}

/** Atomic: one statement; the row is locked while its claim is compared, so that an owner that was replaced adds nothing. */
function addStatement({ keys, references, now }: Dialect): string {
  return `with owned as materialized (
      select k.id from ${keys} k
      where k.id = $1::uuid and k.fence = $2::bigint and k.claim_id = $3::uuid and k.state = ${state.in_progress} for update
    ), added as (
      insert into ${references} (key_id, ref, sealed, at)
      select o.id, r.ref, r.sealed, ${now} from owned o, unnest($4::text[], $5::text[]) r(ref, sealed)
      on conflict (key_id, ref) do nothing
    )
    select o.id from owned o`
}

function addInStatement({ references, now }: Dialect): string {
  return `insert into ${references} (key_id, ref, sealed, at)
    select $1::uuid, r.ref, r.sealed, ${now} from unnest($2::text[], $3::text[]) r(ref, sealed)
    on conflict (key_id, ref) do nothing`
}

const columns = `r.key_id, r.ref, r.sealed, ${epochMs('r.at')} as at_ms`

export function findStatement({ references }: Dialect): string {
  return `select ${columns} from ${references} r where r.ref = $1::text order by r.reference_id desc limit $2::integer`
}

function ofStatement({ references }: Dialect): string {
  return `select ${columns} from ${references} r where r.key_id = $1::uuid order by r.reference_id`
}
