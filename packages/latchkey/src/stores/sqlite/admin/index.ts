/** What operators need beside the rows, assembled. Every write is one transaction of the file. */
import type { AdminRecords } from '../../../ports/faculties/admin.ts'
import { sumOf } from '../../shared/admin/rows.ts'
import type { Database } from '../connection/database.ts'
import { act } from './act.ts'
import { addEntry, entries } from './entries.ts'
import { addRates, beat, prune, rates, rateSums, workers } from './fleet.ts'
import { lanes } from './lanes.ts'
import { bulk, bulkRows, closeWithEntry, moveBulk, planBulk, proposal, proposals, setBulkResult } from './proposals.ts'
import { skip } from './skip.ts'
import { groups, notes, work } from './work.ts'

export function sqliteAdmin(database: Database): AdminRecords {
  return {
    act: request => database.write(handle => act(handle, request)),
    skip: request => database.write(handle => skip(handle, request)),
    lanes: () => database.snapshot(lanes),
    notes: id => database.read(handle => notes(handle, id)),
    work: listing => database.snapshot(handle => work(handle, listing)),
    groups: kind => database.snapshot(handle => groups(handle, kind)),
    sum: async kind => sumOf(await database.snapshot(handle => groups(handle, kind))),
    addEntry: entry => database.write(handle => addEntry(handle, entry)),
    entries: query => database.read(handle => entries(handle, query)),
    proposals: ({ limit }) => database.snapshot(handle => proposals(handle, limit)),
    proposal: proposalId => database.snapshot(handle => proposal(handle, proposalId)),
    closeProposal: (proposalId, to, entry) => database.write(handle => closeWithEntry(handle, proposalId, to, entry)),
    planBulk: (plan, entry) => database.write(handle => planBulk(handle, plan, entry)),
    bulk: bulkId => database.snapshot(handle => bulk(handle, bulkId)),
    bulkRows: (bulkId, which) => database.read(handle => bulkRows(handle, bulkId, which)),
    moveBulk: (bulkId, move, entry) => database.write(handle => moveBulk(handle, bulkId, { ...move, entry })),
    setBulkResult: (bulkId, at, result) => database.write(handle => setBulkResult(handle, bulkId, at, result)),
    beat: beats => database.write(handle => beat(handle, beats)),
    workers: () => database.snapshot(workers),
    addRates: given => database.write(handle => addRates(handle, given)),
    rates: query => database.snapshot(handle => rates(handle, query)),
    rateSums: query => database.snapshot(handle => rateSums(handle, query)),
    prune: ({ limit }) => database.write(handle => prune(handle, limit)),
  }
}
