/** One key's row, as a hash: its fields, reading it, and the bytes that stand for values in scripts. */
import { uuidText } from '../../../ports/clock.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { type OutcomeRow, recordOf, type RecordRow } from '../../shared/record-row.ts'
import type { Link } from '../connection/link.ts'
import { hexOf } from '../connection/layout.ts'
import { bytesOf, isNil, listOf, numberOf, textOf, textOrNull } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'

/**
 * s state · r recovery · fp fingerprint · f fence · c claim id · at attempts · cr crashes · lu locked until · du due at · cd created at ·
 * cm completed at · ex expires at · pk parked at · tb tombstone · gn gone at · de description · er last error code · sc scope · op operation.
 * Only while it matters: ca the call that was granted; by, where evidence answered instead of the owner; us unknown since · lo look · lt tries · la look-up at · ld looked until.
 * Short, and only what is set: the hash of a row is as long as its fields.
 */
export const rowFields: readonly string[] = [
  ...['s', 'r', 'fp', 'f', 'c', 'at', 'cr', 'lu', 'du', 'cd', 'cm', 'ex', 'pk', 'tb', 'gn', 'de', 'er', 'sc', 'op'],
]

export const readFieldsLua: string = `redis.call('HMGET', row, ${rowFields.map(name => `'${name}'`).join(', ')})`

const { completed, failed_retryable: failedRetryable } = stateCodes

/** `over`: past its expiry, and finished. `gone`: of a completed one, only the tombstone is left. Over and not gone: it counts as absent. */
export const lifeLua: string = `
local function lifeOf(found)
  local state, expires, tombstone, goneAt = found[1], found[12], found[14], found[15]
  local over = (state == '${completed}' or state == '${failedRetryable}') and not found[13] and tonumber(expires) <= now
  if state ~= '${completed}' then return over, false end
  if goneAt then return over, not over end
  return over, over and tombstone and expires + tombstone > now
end`

/** A code of a newer version is none of these: what may happen to the row is not known here. */
export const knownRecoveryLua: string = `
local function isKnown(recovery)
  return ${Object.values(recoveryCodes)
    .map(code => `recovery == '${code}'`)
    .join(' or ')}
end`

const readScript: Script = {
  flags: 'no-writes',
  parts: ['row', 'outcome'],
  args: [],
  body: `
local found = ${readFieldsLua}
if not found[1] then return false end
return { now, found, found[1] == '${completed}' and redis.call('GET', outcome) }`,
}

/** Without the outcome, which a listing does not show. */
const readFactsScript: Script = {
  flags: 'no-writes',
  parts: ['row'],
  args: [],
  body: `
local found = ${readFieldsLua}
if not found[1] then return false end
return { now, found }`,
}

export async function readRecord(link: Link, id: string): Promise<KeyRecord | undefined> {
  return recordFrom(id, await link.run(readScript, id))
}

export async function readFacts(link: Link, id: string): Promise<KeyRecord | undefined> {
  return recordFrom(id, await link.run(readFactsScript, id))
}

/** What a script returns of a row: the time, its fields, and the outcome where it was asked for. */
export function recordFrom(id: string, reply: Reply | undefined): KeyRecord | undefined {
  if (isNil(reply)) return undefined
  const [now, fields, outcome] = listOf(reply)
  return recordOf({ ...rowOf(id, listOf(fields)), ...outcomeOf(outcome) }, numberOf(now))
}

function rowOf(id: string, fields: readonly Reply[]): RecordRow {
  const [state, recovery, fingerprint, fence, claimId, attempts, crashes, lockedUntil, due, created, ...rest] = fields
  const [completedAt, expires, parked, tombstone, gone, description, lastErrorCode, scope, operation] = rest
  return {
    id,
    scope: textOf(scope),
    operation: textOf(operation),
    state: textOf(state),
    recovery: textOf(recovery),
    fingerprint: bytesOf(fingerprint),
    fence: textOf(fence),
    claim_id: textOf(claimId),
    attempts: textOf(attempts),
    crashes: textOf(crashes),
    locked_until_ms: textOrNull(lockedUntil),
    due_at_ms: textOrNull(due),
    created_at_ms: textOf(created),
    completed_at_ms: textOrNull(completedAt),
    expires_at_ms: textOf(expires),
    parked_at_ms: textOrNull(parked),
    tombstone_ms: textOrNull(tombstone),
    gone_at_ms: textOrNull(gone),
    description: textOrNull(description),
    last_error_code: textOrNull(lastErrorCode),
  }
}

/** Undefined: the script did not ask for it. Nil: there is none, which makes a completed row unreadable. */
function outcomeOf(reply: Reply | undefined): OutcomeRow {
  if (reply === undefined) return {}
  return { outcome_status: null, outcome_packed: reply === null ? null : bytesOf(reply) }
}

/** As a member of an index: sixteen bytes instead of 36 characters. */
export function memberOf(id: string): Buffer {
  return Buffer.from(hexOf(id), 'hex')
}

export function idOf(member: Reply | undefined): string {
  return uuidText(bytesOf(member))
}

/** The bytes themselves: not every array of them is a Buffer, which is what clients send. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
