/** Phased rows that a worker may claim. */
import type { Resumable } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { bytesOf, isNil, listOf, numberOf, textOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { stepsLua } from '../lua/steps.ts'
import { dueRows } from './due.ts'
import { rowLua } from './packed-row.ts'

const { pending, in_progress: inProgress, failed_retryable: failedRetryable } = stateCodes

/**
 * An expired row counts as absent: continuing it would be another generation, without its input. A row without an input was given
 * back by a worker that found it so.
 */
const resumableScript: Script = {
  flags: 'no-writes',
  parts: ['row', 'journal'],
  args: [],
  body: `${rowLua}${stepsLua}
if recovery ~= ${recoveryCodes.resume} or more.pk then return false end
local input = redis.call('HMGET', journal, 'v', 'dl')
if state == ${inProgress} then
  if at > now or isStuck() then return false end
elseif state == ${pending} or state == ${failedRetryable} then
  if at > now or not input[1] then return false end
  if state == ${failedRetryable} and expires <= now then return false end
else
  return false
end
local isOverdue = input[2] and tonumber(input[2]) <= now and #allSteps() == 0
return { scope, operation, fingerprint, crashes, isOverdue and 1 or 0 }`,
}

export async function resumable(link: Link, { limit }: { limit: number }): Promise<readonly Resumable[]> {
  const [dead, queued] = await Promise.all([dueRows(link, 'leases'), dueRows(link, 'queue')])
  const due = [...dead, ...queued].toSorted((one, other) => one.atMs - other.atMs)
  const found: Resumable[] = []
  for (let from = 0; from < due.length && found.length < limit;) {
    const part = due.slice(from, from + limit - found.length)
    const replies = await Promise.all(part.map(({ id }) => link.run(resumableScript, id)))
    found.push(...part.flatMap(({ id }, at) => resumableFrom(id, replies[at])))
    from += part.length
  }
  return found
}

function resumableFrom(id: string, reply: Reply | undefined): readonly Resumable[] {
  if (isNil(reply)) return []
  const [scope, operation, fingerprint, crashes, overdue] = listOf(reply)
  return [
    {
      identity: { id, scope: textOf(scope), operation: textOf(operation) },
      fingerprint: bytesOf(fingerprint),
      crashes: numberOf(crashes),
      overdue: overdue === 1,
    },
  ]
}
