/** What operators need beside the rows, assembled. */
import type {
  AdminRecords,
  EntryQuery,
  OperatorEntry,
  Rate,
  RateQuery,
  RateRow,
  StoredBulk,
  StoredProposal,
} from '../../../ports/faculties/admin.ts'
import { decidedKeptMs, fleetKeptMs } from '../../shared/admin/limits.ts'
import { sumOf } from '../../shared/admin/rows.ts'
import type { Tables } from '../tables.ts'
import { act, addEntry, closeProposal } from './act.ts'
import { lanes } from './lanes.ts'
import type { HeldBulk, HeldProposal } from './tables.ts'
import { skip } from './skip.ts'
import { groups, notes, work } from './work.ts'

const minuteMs = 60_000

export function memoryAdmin(tables: Tables): AdminRecords {
  return {
    act: async request => act(tables, request),
    skip: async request => skip(tables, request),
    lanes: async () => lanes(tables),
    notes: async id => notes(tables, id),
    work: async listing => work(tables, listing),
    groups: async kind => groups(tables, kind),
    sum: async kind => sumOf(groups(tables, kind)),
    addEntry: async entry => addEntry(tables, entry),
    entries: async query => entries(tables, query),
    ...proposalCalls(tables),
    ...bulkCalls(tables),
    ...fleetCalls(tables),
  }
}

function entries({ log, admin }: Tables, { by, id, after, before, limit }: EntryQuery): readonly OperatorEntry[] {
  const found = log.audited
    .filter(each => (id === undefined || each.id === id) && (by === undefined || each.entry.by === by))
    .filter(({ auditId }) =>
      after === undefined ? Number(auditId) < Number(before ?? Infinity) : Number(auditId) > Number(after),
    )
    .map(({ auditId, id: of, entry }) => ({ ...none, ...entry, id: of, auditId, ...admin.details.get(auditId) }))
  return (after === undefined ? found.toReversed() : found).slice(0, limit)
}

const none = {
  source: undefined,
  requestId: undefined,
  evidence: undefined,
  from: undefined,
  to: undefined,
  fence: undefined,
  refused: undefined,
}

function proposalCalls(tables: Tables): Pick<AdminRecords, 'proposals' | 'proposal' | 'closeProposal'> {
  const { admin, now } = tables
  const shown = ({ seq: _seq, expiresAtMs, ...rest }: HeldProposal): StoredProposal => ({
    ...rest,
    expiresInMs: expiresAtMs - now(),
  })
  return {
    proposals: async ({ limit }) =>
      [...admin.proposals.values()]
        .toSorted(
          (left, right) => Number(right.state === 'open') - Number(left.state === 'open') || right.seq - left.seq,
        )
        .slice(0, limit)
        .map(shown),
    async proposal(proposalId) {
      const held = admin.proposals.get(proposalId)
      return held && shown(held)
    },
    async closeProposal(proposalId, to, entry) {
      if (!closeProposal(tables, proposalId, { to, by: entry.by })) return false
      addEntry(tables, entry)
      return true
    },
  }
}

type BulkCalls = Pick<AdminRecords, 'planBulk' | 'bulk' | 'bulkRows' | 'moveBulk' | 'setBulkResult'>

function bulkCalls(tables: Tables): BulkCalls {
  const { admin, now } = tables
  const shown = ({ rows, validUntilMs, ...rest }: HeldBulk): StoredBulk => ({
    ...rest,
    validInMs: validUntilMs - now(),
    total: rows.length,
    finished: rows.filter(({ result }) => result !== undefined).length,
  })
  return {
    async planBulk({ rows, validInMs, ...plan }, entry) {
      const held = rows.map((row, at) => ({ ...row, at, result: undefined }))
      admin.bulk.set(plan.bulkId, {
        ...plan,
        rows: held,
        state: 'planned',
        atMs: now(),
        validUntilMs: now() + validInMs,
      })
      addEntry(tables, entry)
    },
    async bulk(bulkId) {
      const held = admin.bulk.get(bulkId)
      return held && shown(held)
    },
    bulkRows: async (bulkId, { limit, after = -1 }) =>
      (admin.bulk.get(bulkId)?.rows ?? []).filter(({ at }) => at > after).slice(0, limit),
    async moveBulk(bulkId, { from, to }, entry) {
      const held = admin.bulk.get(bulkId)
      if (held === undefined || !from.includes(held.state)) return false
      admin.bulk.set(bulkId, { ...held, state: to })
      if (entry !== undefined) addEntry(tables, entry)
      return true
    },
    async setBulkResult(bulkId, at, result) {
      const held = admin.bulk.get(bulkId)
      if (held === undefined) return
      const said = (row: HeldBulk['rows'][number]) => (row.at === at ? { ...row, result: row.result ?? result } : row)
      admin.bulk.set(bulkId, { ...held, rows: held.rows.map(said) })
    },
  }
}

type FleetCalls = Pick<AdminRecords, 'beat' | 'workers' | 'addRates' | 'rates' | 'rateSums' | 'prune'>

function fleetCalls({ admin, now }: Tables): FleetCalls {
  const wanted = ({ sinceMs, metrics }: RateQuery): readonly RateRow[] =>
    [...admin.rates.values()].filter(
      rate => rate.minuteMs >= now() - Math.min(sinceMs, fleetKeptMs) && metrics.includes(rate.metric),
    )
  return {
    async beat(beats) {
      for (const beat of beats)
        admin.workers.set(JSON.stringify([beat.process, beat.loop]), { ...beat, seenAtMs: now() })
    },
    workers: async () =>
      [...admin.workers.values()]
        .toSorted((left, right) => right.seenAtMs - left.seenAtMs)
        .map(({ seenAtMs, lastTurnAgoMs, ...beat }) => {
          const seenAgoMs = now() - seenAtMs
          return {
            ...beat,
            seenAgoMs,
            lastTurnAgoMs: lastTurnAgoMs === undefined ? undefined : lastTurnAgoMs + seenAgoMs,
          }
        }),
    async addRates(rates) {
      const ofMinute = now() - (now() % minuteMs)
      for (const { operation, metric, count } of rates) {
        const name = JSON.stringify([ofMinute, operation, metric])
        admin.rates.set(name, {
          minuteMs: ofMinute,
          operation,
          metric,
          count: count + (admin.rates.get(name)?.count ?? 0),
        })
      }
    },
    rates: async query => wanted(query),
    async rateSums(query) {
      const sums = new Map<string, Rate>()
      for (const { operation, metric, count } of wanted(query)) {
        const name = JSON.stringify([operation, metric])
        sums.set(name, { operation, metric, count: count + (sums.get(name)?.count ?? 0) })
      }
      return [...sums.values()]
    },
    async prune({ limit }) {
      const old = now() - fleetKeptMs
      const decided = now() - decidedKeptMs
      return (
        pruned(admin.rates, limit, rate => rate.minuteMs < old) +
        pruned(admin.workers, limit, ({ seenAtMs }) => seenAtMs < old) +
        pruned(admin.proposals, limit, ({ expiresAtMs }) => expiresAtMs < decided) +
        pruned(admin.bulk, limit, ({ atMs }) => atMs < decided)
      )
    },
  }
}

function pruned<Value>(table: Map<string, Value>, limit: number, isOld: (value: Value) => boolean): number {
  const old = [...table].filter(([, value]) => isOld(value)).slice(0, limit)
  for (const [name] of old) table.delete(name)
  return old.length
}
