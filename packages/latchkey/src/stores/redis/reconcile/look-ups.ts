/** Questions to a provider about unknown rows, each with a number that fences it. */
import type { EffectRef, Lookup, LookupClaim, UnknownSummary } from '../../../ports/reconciliation.ts'
import type { OwnerResult } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { isNil, listOf, numberOf, textOf } from '../connection/reply.ts'
import { type Script, wholeMs } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { dueRow, dueRows } from '../keys/due.ts'
import { ownerResult } from '../keys/owner.ts'
import { rowLua, saveLua, uuidBytes } from '../keys/packed-row.ts'
import { doubtLua, stepsLua } from '../lua/steps.ts'

const { unknown } = stateCodes

export interface LookupOptions {
  readonly operation: string
  readonly firstInMs: number
  readonly leaseMs: number
  readonly limit: number
}

/** Due again when the lease is over, and behind the others: a look-up that kills its process delays no other. */
const grantScript: Script = {
  flags: 'allow-oom',
  parts: ['row', 'journal', 'lookups'],
  args: ['id', 'asked', 'firstInMs', 'leaseMs'],
  body: `${rowLua}${saveLua}${stepsLua}${doubtLua}
-- A later version's: it stays due for those who can read it.
if state and state > ${unknown} then return false end
if state ~= ${unknown} or more.pk then
  -- The row was lost, or another version has moved it: nothing is due here any more.
  redis.call('ZREM', lookups, id .. asked)
  return false
end
if more.la > now or more.lo == 0 and at > now - firstInMs then return false end
more.lo, more.lt, more.la, more.ld = more.lo + 1, more.lt + 1, now + leaseMs, now + leaseMs
save()
redis.call('ZADD', lookups, now + leaseMs, id .. operation)
local open = openEffect()
local effect = open and { open.position, open.n, open.e }
return { fence, more.lo, more.lt, now - at, scope, created, attempts, effect or false }`,
}

export async function lookups(link: Link, options: LookupOptions): Promise<readonly Lookup[]> {
  const { operation, firstInMs, leaseMs, limit } = options
  const due = (await dueRows(link, 'lookups')).filter(row => row.operation === operation)
  const granted: Lookup[] = []
  for (let from = 0; from < due.length && granted.length < limit;) {
    const part = due.slice(from, from + limit - granted.length)
    const replies = await Promise.all(
      part.map(({ id }) => link.run(grantScript, id, [uuidBytes(id), operation, wholeMs(firstInMs), wholeMs(leaseMs)])),
    )
    granted.push(...part.flatMap(({ id }, at) => lookupFrom({ id, operation }, replies[at])))
    from += part.length
  }
  return granted
}

function lookupFrom({ id, operation }: { id: string; operation: string }, reply: Reply | undefined): readonly Lookup[] {
  if (isNil(reply)) return []
  const [fence, look, tries, unknownFor, scope, created, attempts, effect] = listOf(reply)
  return [
    {
      id,
      fence: numberOf(fence),
      look: numberOf(look),
      identity: { id, scope: textOf(scope), operation },
      tries: numberOf(tries),
      unknownForMs: numberOf(unknownFor),
      createdAtMs: numberOf(created),
      attempts: numberOf(attempts),
      effect: effectFrom(effect),
    },
  ]
}

function effectFrom(reply: Reply | undefined): EffectRef | undefined {
  if (isNil(reply)) return undefined
  const [position, name, epoch] = listOf(reply)
  return { position: numberOf(position), name: textOf(name), epoch: numberOf(epoch) }
}

/** A write of the look-up's owner; `isOwner` says whether it still is. */
function lookupScript(args: readonly string[], body: string): Script {
  return {
    flags: 'allow-oom',
    parts: ['row', 'lookups', 'parked'],
    args: ['id', 'ownFence', 'ownLook', ...args],
    body: `${rowLua}${saveLua}
if state ~= ${unknown} or fence ~= tonumber(ownFence) or more.lo ~= tonumber(ownLook) then return 0 end
${body}`,
  }
}

const postponeScript: Script = lookupScript(
  ['inMs'],
  `
-- Ended before: the reply to the first write was lost.
if not more.ld then return more.la and 1 or 0 end
more.la, more.ld = now + inMs, nil
save()
redis.call('ZADD', lookups, now + inMs, id .. operation)
return 1`,
)

const giveUpScript: Script = lookupScript(
  ['cause'],
  `
-- The reply to the first write was lost; but not after a person has made the row due.
if not more.ld then return more.la and 0 or 1 end
more.la, more.ld, more.pk, more.er = nil, nil, now, cause
save()
redis.call('ZREM', lookups, id .. operation)
redis.call('ZADD', parked, now, id)
return 1`,
)

const ownerOf = ({ id, fence, look }: LookupClaim) => [uuidBytes(id), String(fence), String(look)]

export async function postpone(link: Link, lookup: LookupClaim, inMs: number): Promise<OwnerResult> {
  return ownerResult(await link.run(postponeScript, lookup.id, [...ownerOf(lookup), wholeMs(inMs)]))
}

export async function giveUp(link: Link, lookup: LookupClaim, cause: string): Promise<OwnerResult> {
  return ownerResult(await link.run(giveUpScript, lookup.id, [...ownerOf(lookup), cause]))
}

const nextScript: Script = {
  flags: 'no-writes',
  parts: ['row'],
  args: [],
  body: `${rowLua}
if state ~= ${unknown} or more.lo == 0 or not more.la then return false end
return more.la - now`,
}

export async function nextLookUpInMs(link: Link, id: string): Promise<number | undefined> {
  const reply = await link.run(nextScript, id)
  return isNil(reply) ? undefined : numberOf(reply)
}

/** Of one bucket: more unknown rows than this are counted as this many. */
const countedMax = 10_000

const unknownsScript: Script = {
  flags: 'no-writes',
  parts: ['unknowns', 'lookups'],
  args: ['limit'],
  body: `
return { now, redis.call('ZRANGE', unknowns, 0, limit, 'WITHSCORES'), redis.call('ZRANGE', lookups, 0, limit) }`,
}

export async function unknowns(link: Link): Promise<readonly UnknownSummary[]> {
  const byOperation = new Map<string, UnknownSummary>()
  for (const reply of await link.runInAll(unknownsScript, [String(countedMax)])) {
    const [now, all, waiting] = listOf(reply)
    const looked = new Set(listOf(waiting).map(member => dueRow(member, 0).id))
    const flat = listOf(all)
    for (let at = 0; at < flat.length; at += 2) {
      const { id, atMs, operation } = dueRow(flat[at] ?? null, flat[at + 1])
      const { count, parked, oldestMs } = byOperation.get(operation) ?? { count: 0, parked: 0, oldestMs: 0 }
      byOperation.set(operation, {
        operation,
        count: count + 1,
        // A row that waits for no look-up is parked.
        parked: parked + (looked.has(id) ? 0 : 1),
        oldestMs: Math.max(oldestMs, numberOf(now) - atMs),
      })
    }
  }
  return [...byOperation.values()]
}
