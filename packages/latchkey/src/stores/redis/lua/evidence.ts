/** Evidence and audit in scripts: written only by the script of the act that they describe. */

/** How long evidence about a row that is gone is shown. A row that is there keeps its own until it is reaped or forgotten. */
export const orphanMs: number = 30 * 24 * 3_600_000

/**
 * s source · v verdict · a 1 if it moved the row · t at · c claim id of the late owner · r the source's name for it · i its id · p, n, e the
 * effect's position, name and epoch · x value · o outcome.
 */
export const evidenceLua: string = `
local function allEvidence()
  local found = {}
  local count = tonumber(redis.call('HGET', evidence, 'n') or 0)
  for place = 1, count do
    local packed = redis.call('HGET', evidence, place)
    if packed then
      local entry = cmsgpack.unpack(packed)
      entry.place = place
      found[#found + 1] = entry
    end
  end
  return found
end

local function putEvidence(entry)
  local place = entry.place or redis.call('HINCRBY', evidence, 'n', 1)
  entry.place = nil
  redis.call('HSET', evidence, place, cmsgpack.pack(entry))
  if state then redis.call('PERSIST', evidence) else redis.call('PEXPIRE', evidence, ${orphanMs}) end
end

-- A late owner that repeats itself after a lost reply has said one thing.
local function noteLateOwner(claimId, verdict, applied)
  for _, entry in ipairs(allEvidence()) do
    if entry.c == claimId and entry.v == verdict then return end
  end
  putEvidence({ s = 'late-owner', v = verdict, a = applied, t = now, c = claimId })
end

local function hasSettled(claimId, verdict)
  for _, entry in ipairs(allEvidence()) do
    if entry.c == claimId and entry.v == verdict and entry.a == 1 then return true end
  end
  return false
end

local function addAudit(act, by, reason, detail)
  redis.call('RPUSH', audit, cmsgpack.pack({ act, by, reason, detail, now }))
end`
