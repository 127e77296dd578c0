/** What operators need beside the rows, assembled. */
import type { AdminRecords } from '../../../ports/faculties/admin.ts'
import { actCall } from './act.ts'
import { entryCalls } from './entries.ts'
import { fleetCalls } from './fleet.ts'
import { laneCalls } from './lanes.ts'
import { bulkCalls, proposalCalls } from './proposals.ts'
import { skipCall } from './skip.ts'
import type { Connections } from './transaction.ts'
import { workCalls } from './work.ts'

export function postgresAdmin(connections: Connections): AdminRecords {
  return {
    ...actCall(connections),
    ...skipCall(connections),
    ...laneCalls(connections),
    ...workCalls(connections),
    ...entryCalls(connections),
    ...proposalCalls(connections),
    ...bulkCalls(connections),
    ...fleetCalls(connections),
  }
}
