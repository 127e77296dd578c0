/** One key's row: reading it, and what scripts judge about it. */
import { uuidText } from '../../../ports/clock.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { recordOf } from '../../shared/record-row.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import type { Link } from '../connection/link.ts'
import { bytesOf, isNil, listOf, numberOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import { headLua, unpackRow } from './packed-row.ts'

const { completed, failed_retryable: failedRetryable } = stateCodes

/** `over`: past its expiry, and finished. `gone`: of a completed one, only the tombstone is left. Over and not gone: it counts as absent. */
export const lifeLua: string = `
local function lifeOf()
  local over = (state == ${completed} or state == ${failedRetryable}) and not more.pk and expires <= now
  if state ~= ${completed} then return over, false end
  if more.gn then return over, not over end
  return over, over and expires + tombstone > now
end`

/** A code of a newer version is none of these: what may happen to the row is not known here. */
export const knownRecoveryLua: string = `
local function isKnown(recovery)
  return ${Object.values(recoveryCodes)
    .map(code => `recovery == ${code}`)
    .join(' or ')}
end`

const readScript: Script = {
  flags: 'no-writes',
  parts: ['row'],
  args: [],
  body: `
local packed = redis.call('GET', row)
return packed and { now, packed }`,
}

/** Without the outcome, which a listing does not show. */
const readFactsScript: Script = {
  flags: 'no-writes',
  parts: ['row'],
  args: [],
  body: `${headLua}
return packed and { now, packed }`,
}

export async function readRecord(link: Link, id: string): Promise<KeyRecord | undefined> {
  const reply = await link.run(readScript, id)
  return isNil(reply) ? undefined : recordFrom(id, reply)
}

export async function readFacts(link: Link, id: string): Promise<KeyRecord | undefined> {
  const reply = await link.run(readFactsScript, id)
  if (isNil(reply)) return undefined
  const [now, packed] = listOf(reply)
  const { outcome_status: _status, outcome_packed: _packed, ...row } = unpackRow(id, bytesOf(packed))
  return recordOf(row, numberOf(now))
}

/** What a script returns of a row: the time, and the row with its outcome. A completed row without one is unreadable. */
export function recordFrom(id: string, reply: Reply | undefined): KeyRecord {
  const [now, packed] = listOf(reply)
  return recordOf(unpackRow(id, bytesOf(packed)), numberOf(now))
}

export function idOf(member: Reply | undefined): string {
  return uuidText(bytesOf(member))
}

/** The bytes themselves: not every array of them is a Buffer, which is what clients send. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
