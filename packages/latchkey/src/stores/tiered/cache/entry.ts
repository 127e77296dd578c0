/**
 * A row of the database as the cache has it.
 *
 *   format (1 byte) · epoch (36) · checksum (16) · length of the facts (4, big endian) · facts, as JSON · body
 *
 * The checksum covers the identity, so that an entry under another key, or one with a wrong byte, is none. It is no signature: who may write to the
 * cache can make one.
 */
import { createHash } from 'node:crypto'
import type { Outcome } from '../../../ports/outcome.ts'
import type { ReadableRecord } from '../../../ports/store.ts'

/** Raise it when a row gets a field: what this version does not know is a miss. */
const format = 1
const checksumAt = 37
const checksumBytes = 16
const lengthAt = checksumAt + checksumBytes
const factsAt = lengthAt + 4

/** How a row is stored: for how long, and how old the reading is when it is sent. */
export interface EntryTimes {
  readonly livesMs: number
  readonly elapsedMs: number
}

interface Facts extends Omit<ReadableRecord, 'fingerprint' | 'outcome'> {
  readonly fingerprint: string
  readonly outcome: (Omit<Outcome, 'body'> & { readonly hasBody: boolean }) | undefined
  /** What the server was told to keep it for. */
  readonly livesMs: number
}

export function encodeEntry(record: ReadableRecord, epoch: string, { livesMs, elapsedMs }: EntryTimes): Buffer {
  const { fingerprint, outcome, ...plain } = record
  const facts: Facts = {
    ...plain,
    ageMs: record.ageMs + elapsedMs,
    leaseLeftMs: record.leaseLeftMs - elapsedMs,
    fingerprint: Buffer.from(fingerprint).toString('base64'),
    outcome: outcome && { ...outcomeFacts(outcome), hasBody: outcome.body !== undefined },
    livesMs,
  }
  const text = Buffer.from(JSON.stringify(facts))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  const content = Buffer.concat([length, text, outcome?.body ?? new Uint8Array()])
  return Buffer.concat([Buffer.from([format]), Buffer.from(epoch), checksum(record.id, content), content])
}

/** `leftMs`: for how long the server will keep it. Undefined: it is no entry of this row, or is past its time. */
export function decodeEntry(id: string, bytes: Buffer, leftMs: number): ReadableRecord | undefined {
  if (bytes[0] !== format || bytes.length < factsAt) return undefined
  const content = bytes.subarray(lengthAt)
  if (!checksum(id, content).equals(bytes.subarray(checksumAt, lengthAt))) return undefined
  const bodyAt = factsAt + bytes.readUInt32BE(lengthAt)
  const facts = JSON.parse(bytes.toString('utf8', factsAt, bodyAt)) as Facts
  const { fingerprint, outcome, livesMs, ...plain } = facts
  // More than it was given: the server's clock was set back, or another hand was on it.
  const passedMs = livesMs - leftMs
  if (leftMs <= 0 || passedMs < 0) return undefined
  return {
    ...absent,
    ...plain,
    ageMs: plain.ageMs + passedMs,
    leaseLeftMs: plain.state === 'in_progress' ? plain.leaseLeftMs - passedMs : 0,
    fingerprint: Buffer.from(fingerprint, 'base64'),
    outcome: outcome && { ...outcomeFacts(outcome), body: outcome.hasBody ? bytes.subarray(bodyAt) : undefined },
  }
}

/** JSON leaves them out. */
const absent = { completedAtMs: undefined, description: undefined, lastErrorCode: undefined }

function outcomeFacts({ status, version, headers }: Omit<Outcome, 'body'>): Omit<Outcome, 'body'> {
  return { status, version, headers }
}

function checksum(id: string, content: Buffer): Buffer {
  return createHash('sha256').update(id).update(content).digest().subarray(0, checksumBytes)
}
