/** What people do with rows: inspect, forget and unpark them. */
import type { Act, AuditEntry, Evidence, ForgetResult, Inspection, UnparkResult } from '../../../ports/store.ts'
import { rowStateOf, stateCodes } from '../../shared/codes.ts'
import { rowParts } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { isNil, listOf, numberOf, textOf, textOrUndefined } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { evidenceLua, orphanMs } from '../lua/evidence.ts'
import { endDoubtUnreadLua, transitionsLua } from '../lua/transitions.ts'
import { rowLua, uuidBytes } from './packed-row.ts'
import { knownRecoveryLua, recordFrom } from './row.ts'

const { pending, in_progress: inProgress, completed, failed_retryable: failedRetryable, unknown } = stateCodes

const inspectScript: Script = {
  flags: 'no-writes',
  parts: ['row', 'evidence', 'audit'],
  args: [],
  body: `local state${evidenceLua}
local notes, acts = {}, {}
for at, entry in ipairs(allEvidence()) do notes[at] = { entry.s, entry.v, entry.n or false, entry.t, entry.a } end
for at, packed in ipairs(redis.call('LRANGE', audit, 0, -1)) do acts[at] = cmsgpack.unpack(packed) end
local packed = redis.call('GET', row)
return { packed and { now, packed }, notes, acts }`,
}

export async function inspect(link: Link, id: string): Promise<Inspection> {
  const [record, notes, acts] = listOf(await link.run(inspectScript, id))
  return {
    record: isNil(record) ? undefined : recordFrom(id, record),
    evidence: listOf(notes).map(evidenceFrom),
    audit: listOf(acts).map(auditFrom),
  }
}

function evidenceFrom(reply: Reply): Evidence {
  const [source, verdict, effect, at, applied] = listOf(reply)
  return {
    // Only scripts of this store write these two.
    source: textOf(source) as Evidence['source'],
    verdict: textOf(verdict) as Evidence['verdict'],
    effect: textOrUndefined(effect),
    atMs: numberOf(at),
    applied: applied === 1,
  }
}

function auditFrom(reply: Reply): AuditEntry {
  const [act, by, reason, detail, at] = listOf(reply)
  return {
    // Only scripts of this store write it.
    act: textOf(act) as AuditEntry['act'],
    by: textOf(by),
    reason: textOf(reason),
    detail: textOf(detail),
    atMs: numberOf(at),
  }
}

function operatorScript(body: string): Script {
  return {
    flags: 'allow-oom',
    isReplicated: true,
    parts: rowParts,
    args: ['id', 'by', 'reason'],
    body: `${knownRecoveryLua}${rowLua}${transitionsLua}${endDoubtUnreadLua}${evidenceLua}
if not state then return { 'not-found' } end
${body}`,
  }
}

/** An unreadable row as well: this version does not know what it is for. While its lease runs it is left to the process that does. */
const forgetScript: Script = operatorScript(`
local isForeign = state > ${unknown}
local isRunning = state == ${inProgress} and at > now
if state ~= ${completed} and not isForeign and (isKnown(recovery) or isRunning) then return { 'wrong-state', state } end
leaveIndexes()
if isForeign then endDoubtUnread() end
redis.call('ZREM', expiries, id)
redis.call('DEL', row, journal)
-- No reaper comes for a row that is in no index.
redis.call('PEXPIRE', evidence, ${orphanMs})
addAudit('forget', by, reason, operation .. string.format(' fence %.0f', fence))
return { 'forgotten' }`)

export async function forget(link: Link, id: string, { by, reason }: Act): Promise<ForgetResult> {
  const [kind, state] = listOf(await link.run(forgetScript, id, [uuidBytes(id), by, reason]))
  const word = textOf(kind)
  if (word === 'wrong-state') return { kind: 'wrong-state', state: rowStateOf(numberOf(state)) }
  return { kind: word === 'forgotten' ? 'forgotten' : 'not-found' }
}

/**
 * It may have been parked for longer than its retention, and a row that is expired counts as absent: it is kept as long again as it was to be
 * kept when it was granted.
 */
const unparkScript: Script = operatorScript(`
if not more.pk then return { 'not-parked' } end
more.pk, more.ld, crashes = nil, nil, 0
redis.call('ZREM', parked, id)
moveExpiry(now + (expires - created))
if state == ${unknown} then
  more.la, more.lt = now, 0
  redis.call('ZADD', lookups, now, id .. operation)
end
if state == ${pending} or state == ${failedRetryable} then toWaiting(state, now) else save(packed:sub(outcomeAt)) end
addAudit('unpark', by, reason, (more.er and more.er .. ' ' or '') .. string.format('fence %.0f', fence))
return { 'unparked' }`)

export async function unpark(link: Link, id: string, { by, reason }: Act): Promise<UnparkResult> {
  const [kind] = listOf(await link.run(unparkScript, id, [uuidBytes(id), by, reason]))
  // The script returns no other words.
  return { kind: textOf(kind) as UnparkResult['kind'] }
}
