/** What the transitions of a row have in common. For scripts with all parts of a row, and the arguments `id`. */
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'

const { pending, completed, failed_retryable: failedRetryable, unknown } = stateCodes

/** How long a finished row outlives its time where no reaper comes: until then it is read, and its fence continued. */
export const graceMs = 3_600_000

/** The row as it is before the script writes. */
export const rowLua: string = `
local state, recovery, fence, claim, created, expires, parkedAt, tombstone, lockedUntil, byEvidence, scope, operation =
  unpack(redis.call('HMGET', row, 's', 'r', 'f', 'c', 'cd', 'ex', 'pk', 'tb', 'lu', 'by', 'sc', 'op'))`

/** Where the row goes, and out of which indexes. A finished row has a time to live, in case that no reaper comes; any other has none. */
export const transitionsLua: string = `
local function leaveIndexes()
  redis.call('ZREM', leases, id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', unknowns, id .. operation)
  redis.call('ZREM', lookups, id .. operation)
  redis.call('ZREM', parked, id)
end

local function endDoubt()
  redis.call('HDEL', row, 'lu', 'ca', 'du', 'pk', 'us', 'lo', 'lt', 'la', 'ld')
end

local function keepUntil(expiresAt)
  local goesAt = expiresAt + (tonumber(tombstone) or 0) + ${graceMs}
  redis.call('PEXPIREAT', row, goesAt)
  redis.call('PEXPIREAT', outcome, goesAt)
end

local function moveExpiry(expiresAt)
  expires = expiresAt
  redis.call('HSET', row, 'ex', expiresAt)
  redis.call('ZADD', expiries, expiresAt, id)
end

local function toUnknown()
  leaveIndexes()
  endDoubt()
  redis.call('HSET', row, 's', ${unknown}, 'us', now, 'lo', 0, 'lt', 0, 'la', now)
  redis.call('ZADD', unknowns, now, id .. operation)
  redis.call('ZADD', lookups, now, id .. operation)
end

-- It may be tried again. Phased work that was unknown has steps behind it: it continues, where guarded work begins again.
local function toWaiting(to, dueAt)
  leaveIndexes()
  endDoubt()
  redis.call('HSET', row, 's', to, 'du', dueAt)
  if recovery == '${recoveryCodes.resume}' then redis.call('ZADD', queue, dueAt, id) end
  redis.call('ZADD', expiries, expires, id)
  if to == ${failedRetryable} then keepUntil(tonumber(expires)) else redis.call('PERSIST', row) end
end

local function untried()
  if recovery == '${recoveryCodes.resume}' then return ${pending} end
  return ${failedRetryable}
end

-- The expiry moves only if the answer would be kept for less time than promised: nothing shortens it.
local function toCompleted(answer, retentionMs)
  leaveIndexes()
  endDoubt()
  redis.call('HSET', row, 's', ${completed}, 'cm', now)
  redis.call('SET', outcome, answer)
  moveExpiry(math.max(tonumber(expires), now + retentionMs))
  keepUntil(expires)
end`
