/** Evidence: stored, found again, and forgotten when it is old. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { EffectRef, Finding, KeepResult, Reconciliation, Subject } from '../../../ports/reconciliation.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { milliseconds } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { isUuid, readable } from '../sql/columns.ts'
import { exact } from '../sql/values.ts'
import { fitsTheQuestion, openEffect, verdictValues } from './settle.ts'

type EvidenceCalls = Pick<Reconciliation, 'keep' | 'waiting' | 'findEffect' | 'forgetDeliveries'>

interface KeptRow {
  readonly replayed: boolean
  readonly evidence_id: RawNumber | null
  readonly told: RawNumber | null
}

type WaitingRow = { readonly evidence_id: RawNumber; readonly operation: string }

/** All null, or none. */
export interface EffectRow {
  readonly position: RawNumber | null
  readonly name: string | null
  readonly epoch: RawNumber | null
}

export function evidenceCalls(sql: Dialect, run: RunStatement): EvidenceCalls {
  const texts = {
    keep: keepStatement(sql),
    waiting: waitingStatement(sql),
    effect: effectStatement(sql),
    forget: forgetStatement(sql),
  }
  return {
    async keep(subject, finding) {
      if (!isUuid(subject.id)) return { kind: 'no-row' }
      const [row] = await run<KeptRow>(texts.keep, keepValues(subject, finding))
      if (row === undefined) throw new LatchkeyError('invariant', 'storing evidence returned no row')
      return keepResult(row)
    },
    async waiting({ limit }) {
      const rows = await run<WaitingRow>(texts.waiting, [limit])
      return rows.map(row => ({ evidenceId: String(row.evidence_id), operation: row.operation }))
    },
    async findEffect(downstreamKey) {
      if (!isUuid(downstreamKey)) return undefined
      const [row] = await run<EffectRow & { readonly id: string }>(texts.effect, [downstreamKey])
      return row && { id: row.id, effect: effectOf(row) }
    },
    async forgetDeliveries({ olderThanMs, limit }) {
      return (await run(texts.forget, [olderThanMs, limit])).length
    },
  }
}

export function effectOf({ position, name, epoch }: EffectRow): EffectRef | undefined {
  return position === null ? undefined : { position: Number(position), name: name ?? '', epoch: Number(epoch) }
}

function keepValues({ id, effect }: Subject, { source, ref, verdict, delivery }: Finding): readonly unknown[] {
  return [
    id,
    source,
    exact(ref),
    delivery?.signedAtMs ?? null,
    effect?.position ?? null,
    effect === undefined ? null : readable(effect.name),
    effect?.epoch ?? null,
    ...verdictValues(verdict),
  ]
}

function keepResult(row: KeptRow): KeepResult {
  if (row.replayed) return { kind: 'replayed' }
  if (row.evidence_id === null) return { kind: 'no-row' }
  return { kind: Number(row.told) === 1 ? 'kept' : 'duplicate', evidenceId: String(row.evidence_id) }
}

/**
 * Atomic: one statement. The primary key of the messages is the arbiter between two deliveries of one message, the unique index of the
 * evidence between two calls with the same finding; both conflicts write, so that the second call learns of the first, which its snapshot
 * does not show. What an earlier generation of the key left under the same name is replaced. The key's lock keeps a reaper away, which would
 * not see the new evidence, and lets the owner work.
 */
function keepStatement(sql: Dialect): string {
  const columns = 'effect_position, effect_name, effect_epoch, verdict, status, version, headers, body, result'
  const began = `(select s.created_at from seen s)`
  return `with seen as materialized (
      select k.id, k.fence, k.claim_id, k.created_at from ${sql.keys} k where k.id = $1::uuid for key share
    ), delivered as (
      insert into ${sql.received} as m (source, ref, at, signed_at_ms)
      select $2::text, $3::text, ${sql.now}, $4::float8 where $4::float8 is not null
      on conflict (source, ref) do update set signed_at_ms = excluded.signed_at_ms where m.signed_at_ms < excluded.signed_at_ms
      returning m.at
    ), heard as (
      select d.at from delivered d union all select ${sql.now} where $4::float8 is null
    ), kept as (
      insert into ${sql.evidence} as e (key_id, fence, claim_id, source, ref, applied, at, ${columns})
      select s.id, s.fence, s.claim_id, $2::text, $3::text, false, h.at, $5::integer, $6::text, $7::integer,
        $8::text, $9::smallint, $10::integer, $11::text, $12::bytea, $13::text
      from seen s, heard h where h.at >= s.created_at
      on conflict (key_id, source, ref) where ref is not null do update set told = case when e.at < ${began} then 1 else e.told + 1 end,
        ${renewed(`applied at fence claim_id settled_claim ${columns.replaceAll(',', '')}`, began)}
      returning e.evidence_id, e.told
    )
    select not exists (select from heard) as replayed, k.evidence_id, k.told from (select) one left join kept k on true`
}

function renewed(columns: string, began: string): string {
  return columns
    .split(' ')
    .map(column => `${column} = case when e.at < ${began} then excluded.${column} else e.${column} end`)
    .join(', ')
}

/**
 * Reads only: it is `apply` that decides, and this asks the same question. In the order of arrival. Evidence without a ref is the answer of an owner
 * that had lost its claim, about an attempt that was settled otherwise: it is for an operator to weigh.
 */
function waitingStatement(sql: Dialect): string {
  return `select e.evidence_id, k.operation
    from ${sql.due} d join ${sql.keys} k on k.id = d.id join ${sql.evidence} e on e.key_id = k.id ${openEffect(sql, 'k')}
    where not e.applied and e.ref is not null and e.verdict in ('happened', 'declined') and e.at >= k.created_at and ${fitsTheQuestion}
      and (e.effect_position, e.effect_epoch) is not distinct from (o.position, o.epoch)
    order by e.evidence_id limit $1::integer`
}

function effectStatement(sql: Dialect): string {
  return `select p.id, p.position, p.name, p.downstream_epoch as epoch from ${sql.steps} p
    where p.downstream_key = $1::uuid order by p.opened_at desc limit 1`
}

/** Atomic: one statement. What another process is just forgetting, or receiving again, is skipped. */
function forgetStatement(sql: Dialect): string {
  return `with old as materialized (
      select m.source, m.ref from ${sql.received} m where m.at <= (select ${sql.now}) - ${milliseconds('$1')}
      order by m.at limit $2::integer for update skip locked
    )
    delete from ${sql.received} m using old o where m.source = o.source and m.ref = o.ref returning 1`
}
