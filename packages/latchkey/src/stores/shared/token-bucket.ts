/** The arithmetic of a token bucket that processes share, for stores that do it here and not in SQL. */
import type { Leased, Tokens } from '../../ports/faculties/quotas.ts'

/** As it is stored. */
export interface StoredBucket {
  readonly tokens: number
  readonly filledAtMs: number
  /** From then on it is full, and need not be stored. */
  readonly fullAtMs: number
}

const minuteMs = 60_000

export interface Debited {
  readonly bucket: StoredBucket
  readonly leased: Leased
}

/** `stored`: undefined where there is none, which means that it is full. */
export function debit(stored: StoredBucket | undefined, { perMinute, tokens }: Tokens, nowMs: number): Debited {
  const filled = stored === undefined ? perMinute : filledTo(stored, perMinute, nowMs)
  const granted = Math.min(tokens, Math.floor(filled))
  return {
    bucket: bucketOf(filled - granted, perMinute, nowMs),
    leased: leasedOf(granted, filled - granted, perMinute),
  }
}

export function credit(stored: StoredBucket, { perMinute, tokens }: Tokens, nowMs: number): StoredBucket {
  return bucketOf(Math.min(perMinute, filledTo(stored, perMinute, nowMs) + tokens), perMinute, nowMs)
}

/** `left`: what the bucket holds after the lease. */
export function leasedOf(granted: number, left: number, perMinute: number): Leased {
  return { granted, nextInMs: left >= 1 ? 0 : Math.ceil(((1 - left) * minuteMs) / perMinute) }
}

function filledTo({ tokens, filledAtMs }: StoredBucket, perMinute: number, nowMs: number): number {
  return Math.min(perMinute, tokens + (Math.max(0, nowMs - filledAtMs) * perMinute) / minuteMs)
}

function bucketOf(tokens: number, perMinute: number, nowMs: number): StoredBucket {
  const fullAtMs = nowMs + Math.ceil(((perMinute - tokens) * minuteMs) / perMinute)
  return { tokens, filledAtMs: nowMs, fullAtMs }
}
