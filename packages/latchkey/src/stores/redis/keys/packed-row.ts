/**
 * A row as one value, which a script reads and writes with one command each. Little endian:
 *
 *   format 1 (1 byte) · state (1) · recovery (1) · attempts (4) · crashes (4) · fence · created · expires · at · tombstone (8 each) · claim id (16)
 *   call (1 + n) · fingerprint (2 + n) · scope (2 + n) · operation (2 + n) · more (4 + n) · outcome, up to the end
 *
 * `at` is the instant that its state is about: the end of the lease, when it is due, when it was completed, since when it is unknown. `call` is the one
 * that was granted, while the row is in progress. `more` is JSON of what few rows have, or empty: pk parked at · gn gone at · de description ·
 * er last error code · by, where evidence answered instead of the owner; of an unknown row lo look · lt tries · la look-up at · ld looked until.
 */
import { uuidOfHex } from '../../../ports/clock.ts'
import type { ClaimRequest } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { RecordRow } from '../../shared/record-row.ts'
import { hexOf } from '../connection/layout.ts'

const format = 1
const headFormat = '<BBBI4I4dddddc16'
const rowFormat = `${headFormat}Bc0Hc0Hc0Hc0I4c0`
/** Of the part with a fixed size. */
const headBytes = 67
export const fenceOffset = 11
const atOffset = 35

/** A state that none is: the row is of a format that this version does not know, or it is damaged. */
const unreadable = 255

const { pending, in_progress: inProgress, completed, failed_retryable: failedRetryable } = stateCodes

/** How long a finished row outlives its time where no reaper comes: until then it is read, and its fence continued. */
export const graceMs = 3_600_000

/** Names that all scripts with a row know. `state` is nil where there is none. */
const namesLua = `
local packed, state, recovery, attempts, crashes, fence, created, expires, at, tombstone, claim, call, fingerprint, scope, operation, outcomeAt
local more = {}
local function unpackRow()
  local format, json
  format, state, recovery, attempts, crashes, fence, created, expires, at, tombstone, claim, call, fingerprint, scope, operation, json, outcomeAt =
    struct.unpack('${rowFormat}', packed)
  if format ~= ${format} then error('another format') end
  if json ~= '' then more = cjson.decode(json) end
end
local function isDamaged()
  if pcall(unpackRow) then return false end
  state, recovery, attempts, crashes, fence, created, expires, at, tombstone = ${unreadable}, ${unreadable}, 0, 0, 0, 0, 0, 0, 0
  claim, call, fingerprint, scope, operation, outcomeAt = '', '', '', '', '', #packed + 1
  return true
end`

/** The row, as it is before the script writes. */
export const rowLua: string = `${namesLua}
packed = redis.call('GET', row)
if packed then isDamaged() end`

/** The same without reading the outcome, which may be large. */
export const headLua: string = `${namesLua}
packed = redis.call('GETRANGE', row, 0, 1023)
if packed == '' then
  packed = false
elseif isDamaged() then
  packed = redis.call('GET', row)
  isDamaged()
end
packed = packed and packed:sub(1, outcomeAt - 1)`

/** Writes what the names say now. A finished row has a time to live, in case that no reaper comes; any other has none. */
export const saveLua: string = `
local function goesAt()
  return expires + (more.gn and 0 or tombstone) + ${graceMs}
end

local function save(outcome)
  local json = next(more) and cjson.encode(more) or ''
  local bytes = struct.pack('${rowFormat}', ${format}, state, recovery, attempts, crashes, fence, created, expires, at, tombstone, claim,
    #call, call, #fingerprint, fingerprint, #scope, scope, #operation, operation, #json, json) .. (outcome or '')
  if (state == ${completed} or state == ${failedRetryable}) and not more.pk then
    redis.call('SET', row, bytes, 'PXAT', goesAt())
  else
    redis.call('SET', row, bytes)
  end
end`

/** Only the end of the lease moves. */
export const renewLua: string = `
local function renew(leaseMs)
  redis.call('SETRANGE', row, ${atOffset}, struct.pack('<d', now + leaseMs))
  redis.call('ZADD', leases, now + leaseMs, id)
end`

/** For scripts that look at many rows: the part with a fixed size, of a row that this version has written. False: of any other. */
export const quickLua: string = `
local function headOf(packed)
  if #packed <= ${headBytes} or packed:byte() ~= ${format} then return false end
  return true, select(2, struct.unpack('${headFormat}', packed))
end

local function packHead(state, recovery, attempts, crashes, fence, created, expires, at, tombstone, claim)
  return struct.pack('${headFormat}', ${format}, state, recovery, attempts, crashes, fence, created, expires, at, tombstone, claim)
end

-- As text, which the server would make more slowly. Not by %d, which is too short for these numbers in a build for 32 bits.
local function whole(number)
  return string.format('%.0f', number)
end

-- What follows the head, without the call.
local function factsOf(packed)
  return packed:sub(${headBytes + 2} + packed:byte(${headBytes + 1}))
end`

/** Sixteen bytes instead of 36 characters: of an id as a member of an index, and of a claim id. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(hexOf(uuid), 'hex')
}

/** What a new row has behind its head, after as many bytes as the caller wants before it. */
export function packTail(
  {
    fingerprint,
    identity: { scope, operation },
    description,
  }: Pick<ClaimRequest, 'fingerprint' | 'identity' | 'description'>,
  { call, before }: { call: string; before: number },
): Buffer {
  const more = description === undefined ? '' : JSON.stringify({ de: wellFormed(description) })
  const [scopeBytes, operationBytes, moreBytes] = [
    Buffer.byteLength(scope),
    Buffer.byteLength(operation),
    Buffer.byteLength(more),
  ]
  const lengths = 11
  const bytes = Buffer.allocUnsafe(
    before + lengths + call.length + fingerprint.length + scopeBytes + operationBytes + moreBytes,
  )
  let place = bytes.writeUInt8(call.length, before)
  place += bytes.write(call, place, 'latin1')
  place = bytes.writeUInt16LE(fingerprint.length, place)
  bytes.set(fingerprint, place)
  place = bytes.writeUInt16LE(scopeBytes, place + fingerprint.length)
  place += bytes.write(scope, place)
  place = bytes.writeUInt16LE(operationBytes, place)
  place += bytes.write(operation, place)
  place = bytes.writeUInt32LE(moreBytes, place)
  if (moreBytes > 0) bytes.write(more, place)
  return bytes
}

/** Half of a pair of UTF-16 units is no character, and JSON would keep it. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString()
}

interface More {
  readonly pk?: number
  readonly gn?: number
  readonly de?: string
  readonly er?: string
}

/** A row and its outcome, which is null where there is none. */
export type UnpackedRow = RecordRow & { readonly outcome_status: null; readonly outcome_packed: Buffer | null }

export function unpackRow(id: string, packed: Buffer): UnpackedRow {
  try {
    if (packed[0] === format) return unpackKnown(id, packed)
  } catch {
    // It is cut off.
  }
  return unpackKnown(id, unreadableRow)
}

/** Every replay comes this way: one object, and no copies of it. */
function unpackKnown(id: string, packed: Buffer): UnpackedRow {
  const fingerprintAt = headBytes + 3 + packed.readUInt8(headBytes)
  const scopeAt = fingerprintAt + packed.readUInt16LE(fingerprintAt - 2) + 2
  const operationAt = scopeAt + packed.readUInt16LE(scopeAt - 2) + 2
  const moreAt = operationAt + packed.readUInt16LE(operationAt - 2) + 4
  const outcomeAt = moreAt + packed.readUInt32LE(moreAt - 4)
  const more = outcomeAt === moreAt ? none : moreFrom(packed.toString('utf8', moreAt, outcomeAt))
  const state = packed.readUInt8(1)
  const at = packed.readDoubleLE(atOffset)
  const tombstone = packed.readDoubleLE(43)
  return {
    id,
    scope: packed.toString('utf8', scopeAt, operationAt - 2),
    operation: packed.toString('utf8', operationAt, moreAt - 4),
    state,
    recovery: packed.readUInt8(2),
    fingerprint: packed.subarray(fingerprintAt, scopeAt - 2),
    fence: packed.readDoubleLE(fenceOffset),
    claim_id: uuidOfHex(packed.toString('hex', 51, headBytes)),
    attempts: packed.readUInt32LE(3),
    crashes: packed.readUInt32LE(7),
    locked_until_ms: state === inProgress ? at : null,
    due_at_ms: state === pending || state === failedRetryable ? at : null,
    created_at_ms: packed.readDoubleLE(19),
    completed_at_ms: state === completed ? at : null,
    expires_at_ms: packed.readDoubleLE(27),
    parked_at_ms: more.pk ?? null,
    tombstone_ms: tombstone === 0 ? null : tombstone,
    gone_at_ms: more.gn ?? null,
    description: more.de ?? null,
    last_error_code: more.er ?? null,
    outcome_status: null,
    outcome_packed: outcomeAt === packed.length ? null : packed.subarray(outcomeAt),
  }
}

const none: More = {}

function moreFrom(json: string): More {
  // Only scripts of this store write it.
  return JSON.parse(json) as More
}

/** It is shown as unreadable, and nothing happens to it until an operator has looked. */
const unreadableRow = Buffer.alloc(headBytes + 11).fill(unreadable, 1, 3)
