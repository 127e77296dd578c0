/** Acts that wait for a second person, and acts on many rows. */
import type { AdminRecords, NewBulk } from '../../../ports/faculties/admin.ts'
import {
  type BulkColumns,
  bulkOf,
  type BulkRowColumns,
  bulkRowOf,
  type ProposalColumns,
  proposalOf,
} from '../../shared/admin/rows.ts'
import { readable } from '../sql/columns.ts'
import { epochMs, milliseconds } from '../sql/fragments.ts'
import { adminNames, type Dialect } from '../sql/names.ts'
import { entryWriter } from './entries.ts'
import { type Connections, inOneCommit } from './transaction.ts'

type ProposalCalls = Pick<AdminRecords, 'proposals' | 'proposal' | 'closeProposal'>
type BulkCalls = Pick<AdminRecords, 'planBulk' | 'bulk' | 'bulkRows' | 'moveBulk' | 'setBulkResult'>

/** `$1`: the proposal; `$2`: who decides. Only an open one that has not expired. */
export function closeStatement(sql: Dialect, to: string): string {
  return `update ${adminNames(sql).proposals} p set state = ${to}, decided_by = $2::text, detail = ''
    where p.proposal_id = $1::uuid and p.state = 'open' and p.expires_at > ${sql.now} returning 1`
}

export function proposalCalls(connections: Connections): ProposalCalls {
  const { sql, run } = connections
  const { proposals } = adminNames(sql)
  const columns = `p.proposal_id, p.key_id, p.scope, p.operation, p.act, p.detail, p.actor as by, p.reason, p.evidence, p.fence, p.version,
    ${epochMs('p.at')} as at_ms, ${epochMs(`(p.expires_at - ${sql.now})`)} as expires_in_ms, p.state, p.decided_by`
  const close = closeStatement(sql, '$3::text')
  return {
    async proposals({ limit }) {
      const text = `select ${columns} from ${proposals} p order by (p.state = 'open') desc, p.seq desc limit $1::integer`
      return (await run<ProposalColumns>(text, [limit])).map(proposalOf)
    },
    async proposal(proposalId) {
      const text = `select ${columns} from ${proposals} p where p.proposal_id = $1::uuid`
      const [row] = await run<ProposalColumns>(text, [proposalId])
      return row && proposalOf(row)
    },
    closeProposal: (proposalId, to, entry) =>
      inOneCommit(connections, async within => {
        const closed = await within(close, [proposalId, readable(entry.by), to])
        if (closed.length === 0) return false
        await entryWriter(sql, within)(entry)
        return true
      }),
  }
}

export function bulkCalls(connections: Connections): BulkCalls {
  const { sql, run } = connections
  const { bulkRows } = adminNames(sql)
  const texts = bulkStatements(sql)
  return {
    planBulk: (plan, entry) =>
      inOneCommit(connections, async within => {
        await within(texts.plan, planValues(plan))
        await within(texts.rows, rowValues(plan))
        await entryWriter(sql, within)(entry)
      }),
    async bulk(bulkId) {
      const [row] = await run<BulkColumns>(texts.bulk, [bulkId])
      return row && bulkOf(row)
    },
    async bulkRows(bulkId, { limit, after = -1 }) {
      const text = `select r.at, r.target, r.fence, r.version, r.detail, r.result from ${bulkRows} r
        where r.bulk_id = $1::uuid and r.at > $2::integer order by r.at limit $3::integer`
      return (await run<BulkRowColumns>(text, [bulkId, after, limit])).map(bulkRowOf)
    },
    async moveBulk(bulkId, { from, to }, entry) {
      const values = [bulkId, from, to]
      if (entry === undefined) return (await run(texts.move, values)).length === 1
      return inOneCommit(connections, async within => {
        if ((await within(texts.move, values)).length === 0) return false
        await entryWriter(sql, within)(entry)
        return true
      })
    },
    async setBulkResult(bulkId, at, result) {
      const text = `update ${bulkRows} r set result = $3::text where r.bulk_id = $1::uuid and r.at = $2::integer and r.result is null`
      await run(text, [bulkId, at, result])
    },
  }
}

function bulkStatements(sql: Dialect) {
  const { bulk, bulkRows } = adminNames(sql)
  return {
    plan: `insert into ${bulk} (bulk_id, act, actor, reason, detail, at, valid_until, total)
      select $1::uuid, $2::text, $3::text, $4::text, $5::text, t.now, t.now + ${milliseconds('$6')}, $7::integer
      from (select ${sql.now} as now) t`,
    rows: `insert into ${bulkRows} (bulk_id, at, target, fence, version, detail)
      select $1::uuid, r.at - 1, r.target, r.fence, r.version, r.detail
      from unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[]) with ordinality r(target, fence, version, detail, at)`,
    move: `update ${bulk} b set state = $3::text where b.bulk_id = $1::uuid and b.state = any($2::text[]) returning 1`,
    bulk: `select b.bulk_id, b.act, b.actor as by, b.reason, b.detail, b.state, ${epochMs('b.at')} as at_ms, b.total,
        ${epochMs(`(b.valid_until - ${sql.now})`)} as valid_in_ms,
        (select pg_catalog.count(*) from ${bulkRows} r where r.bulk_id = b.bulk_id and r.result is not null) as finished
      from ${bulk} b where b.bulk_id = $1::uuid`,
  }
}

function planValues({ bulkId, act, by, reason, detail, validInMs, rows }: NewBulk): readonly unknown[] {
  return [bulkId, act, readable(by), readable(reason), readable(detail), validInMs, rows.length]
}

function rowValues({ bulkId, rows }: NewBulk): readonly unknown[] {
  return [
    bulkId,
    rows.map(({ id }) => id),
    rows.map(({ expected }) => expected?.fence ?? null),
    rows.map(({ expected }) => expected?.version ?? null),
    rows.map(({ detail }) => detail ?? null),
  ]
}
