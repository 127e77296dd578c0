/** What a request does about a row it did not win. Pure. */
import { unreachable } from '../ports/errors.ts'
import type { Outcome } from '../ports/outcome.ts'
import type { KeyRecord } from '../ports/store.ts'
import { differingParts, type FingerprintPart, fingerprintVersion, sameFingerprint } from './fingerprint/fingerprint.ts'

export type Decision =
  | { readonly kind: 'replay'; readonly outcome: Outcome }
  /** Finished, but its body was over the cap: told, never run again. */
  | { readonly kind: 'not-stored'; readonly outcome: Outcome }
  | { readonly kind: 'misuse'; readonly differs: readonly FingerprintPart[] }
  | { readonly kind: 'in-progress'; readonly retryAfterMs: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'parked' }
  /** Finished long ago, and known to be: never run again. */
  | { readonly kind: 'gone' }
  /** Its owner is overdue and its recovery is `hold`: move it to `unknown`, then look again. */
  | { readonly kind: 'sweep' }
  /** It became free after we looked: claim again. */
  | { readonly kind: 'claim-again' }
  /** Written under another fingerprint version: compare by that one. Never misuse by itself. */
  | { readonly kind: 'compare-by'; readonly version: number }

export function decide(record: KeyRecord, fingerprint: Uint8Array): Decision {
  if (record.expired) return { kind: 'claim-again' }
  // Before the fingerprint: what was asked then is of no use to anybody now.
  if (record.gone) return { kind: 'gone' }
  if (fingerprintVersion(record.fingerprint) !== fingerprintVersion(fingerprint)) {
    return { kind: 'compare-by', version: fingerprintVersion(record.fingerprint) }
  }
  // Compared before the state is looked at: a client that reused a key by mistake should learn it now, not after the first
  // request has finished.
  if (!sameFingerprint(record.fingerprint, fingerprint)) {
    return { kind: 'misuse', differs: differingParts(record.fingerprint, fingerprint) }
  }
  return decideByState(record)
}

function decideByState(record: KeyRecord): Decision {
  switch (record.state) {
    case 'completed':
      return decideCompleted(record)
    case 'unknown':
      return { kind: 'unknown' }
    case 'in_progress':
      if (record.leaseLeftMs > 0) return { kind: 'in-progress', retryAfterMs: record.leaseLeftMs }
      // A dead `resume` row that was not granted has an open intent that may not be repeated.
      return record.recovery === 'rerun' ? { kind: 'claim-again' } : { kind: 'sweep' }
    case 'failed_retryable':
    case 'pending':
      if (record.parked) return { kind: 'parked' }
      return record.dueInMs > 0 ? { kind: 'in-progress', retryAfterMs: record.dueInMs } : { kind: 'claim-again' }
    default:
      return unreachable(record.state)
  }
}

function decideCompleted({ outcome }: KeyRecord): Decision {
  // A reaper may have taken the answer between two reads of one row; then the row is as good as expired.
  if (outcome === undefined) return { kind: 'claim-again' }
  return outcome.body === undefined ? { kind: 'not-stored', outcome } : { kind: 'replay', outcome }
}
