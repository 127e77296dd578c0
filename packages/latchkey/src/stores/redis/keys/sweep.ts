/** Rows whose owner is silent, by their recovery. */
import type { Swept } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { isNil, listOf, numberOf, textOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { dueRows } from './due.ts'
import { ownerScript } from './owner.ts'
import { uuidBytes } from './packed-row.ts'

const { in_progress: inProgress, failed_retryable: failedRetryable, unknown } = stateCodes
const { rerun, resume } = recoveryCodes

const sweepScript: Script = ownerScript(
  [],
  `
-- A later version's: it stays due for those who can read it.
if state and state > ${unknown} then return false end
if state ~= ${inProgress} then
  -- The row was lost, or another version has moved it: nothing is due here any more.
  redis.call('ZREM', leases, id)
  return false
end
if at > now or recovery == ${resume} and not isStuck() then return false end
crashes = crashes + 1
if recovery == ${rerun} then
  toWaiting(${failedRetryable}, now)
  return { operation, ${failedRetryable} }
end
toUnknown()
return { operation, ${unknown} }`,
)

export async function sweep(link: Link, { limit, id }: { limit: number; id?: string }): Promise<readonly Swept[]> {
  const ids = id === undefined ? (await dueRows(link, 'leases')).map(row => row.id) : [id]
  const swept: Swept[] = []
  // In parts of what is still wanted: rows that are left to a resumer do not count.
  for (let from = 0; from < ids.length && swept.length < limit;) {
    const part = ids.slice(from, from + limit - swept.length)
    const replies = await Promise.all(part.map(each => link.run(sweepScript, each, [uuidBytes(each), '', ''])))
    swept.push(...part.flatMap((each, at) => sweptFrom(each, replies[at])))
    from += part.length
  }
  return swept
}

function sweptFrom(id: string, reply: Reply | undefined): readonly Swept[] {
  if (isNil(reply)) return []
  const [operation, state] = listOf(reply)
  return [{ id, operation: textOf(operation), to: numberOf(state) === unknown ? 'unknown' : 'failed_retryable' }]
}
