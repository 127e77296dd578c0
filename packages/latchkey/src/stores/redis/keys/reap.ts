/** What becomes of rows after their time: nothing, or a tombstone first. */
import type { Link } from '../connection/link.ts'
import type { Script } from '../connection/script.ts'
import { rowParts } from '../connection/layout.ts'
import { endDoubtUnreadLua } from '../lua/transitions.ts'
import { dueRows } from './due.ts'
import { headLua, saveLua, uuidBytes } from './packed-row.ts'
import { lifeLua } from './row.ts'

/** How long a row that is past its expiry and not finished is left alone before it is looked at again. */
const lookAgainMs = 3_600_000

/** The row's evidence ends with its outcome, because it may hold a whole answer; its audit is kept for good. */
const reapScript: Script = {
  flags: 'allow-oom',
  parts: rowParts,
  args: ['id'],
  body: `${headLua}${saveLua}${lifeLua}${endDoubtUnreadLua}
if not state then
  -- It had a time to live, and no reaper came before its end; or it was evicted.
  redis.call('DEL', journal, evidence)
  for _, index in ipairs({ expiries, leases, queue, parked }) do redis.call('ZREM', index, id) end
  endDoubtUnread()
  return 0
end
local over, gone = lifeOf()
if not over then
  -- A tombstone that lasts, or a row that has not ended: it stays.
  redis.call('ZADD', expiries, math.max(expires, now + ${lookAgainMs}), id)
  return 0
end
redis.call('DEL', journal, evidence)
if gone then
  expires, more.gn, more.by = expires + tombstone, now, nil
  save()
  redis.call('ZADD', expiries, expires, id)
  return 1
end
redis.call('DEL', row)
redis.call('ZREM', expiries, id)
redis.call('ZREM', queue, id)
return 1`,
}

export async function reap(link: Link, { limit }: { limit: number }): Promise<number> {
  const due = await dueRows(link, 'expiries')
  let reaped = 0
  for (let from = 0; from < due.length && reaped < limit;) {
    const part = due.slice(from, from + limit - reaped)
    const replies = await Promise.all(part.map(({ id }) => link.run(reapScript, id, [uuidBytes(id)])))
    reaped += replies.filter(reply => reply === 1).length
    from += part.length
  }
  return reaped
}
