/** What a request does about a row it did not win. Pure. */
import { unreachable } from '../../ports/errors.ts'
import type { Outcome } from '../../ports/outcome.ts'
import { isSealedOutcome } from '../../ports/sealed-marks.ts'
import type { KeyRecord, ReadableRecord } from '../../ports/store.ts'
import {
  differingParts,
  type FingerprintPart,
  fingerprintVersion,
  sameFingerprint,
} from '../fingerprint/fingerprint.ts'

export type Decision =
  | { readonly kind: 'replay'; readonly outcome: Outcome }
  /** Finished, but its body was over the size limit: reported, never run again. */
  | { readonly kind: 'not-stored'; readonly outcome: Outcome }
  | { readonly kind: 'misuse'; readonly differs: readonly FingerprintPart[] }
  /** An owner works on it. */
  | { readonly kind: 'running' }
  /** It waits for its next try. */
  | { readonly kind: 'not-due'; readonly dueInMs: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'parked' }
  /** Finished long ago, and known to be: never run again. */
  | { readonly kind: 'gone' }
  /** Stored by a newer version, or damaged: nothing runs until an operator has inspected it. */
  | { readonly kind: 'unreadable'; readonly why: string }
  /** Its owner is overdue and its recovery is `hold`: move it to `unknown`, then read it again. */
  | { readonly kind: 'sweep' }
  /** It became free after it was read: claim again. */
  | { readonly kind: 'claim-again' }
  /** Written under another fingerprint version: compare by that one. Never misuse by itself. */
  | { readonly kind: 'compare-by'; readonly version: number }

export function decide(record: KeyRecord, fingerprint: Uint8Array): Decision {
  if (record.expired) return { kind: 'claim-again' }
  // Before the fingerprint: the old request no longer matters.
  if (record.gone) return { kind: 'gone' }
  if (record.state === 'unreadable') return { kind: 'unreadable', why: record.why }
  if (fingerprintVersion(record.fingerprint) !== fingerprintVersion(fingerprint)) {
    return { kind: 'compare-by', version: fingerprintVersion(record.fingerprint) }
  }
  // Of one version all are of one length. A shorter one would be taken for another request.
  if (record.fingerprint.length !== fingerprint.length) {
    return { kind: 'unreadable', why: `its fingerprint has ${record.fingerprint.length} bytes` }
  }
  // Compared before the state is checked: a client that reused a key by mistake should learn it now, not after the first
  // request has finished.
  if (!sameFingerprint(record.fingerprint, fingerprint)) {
    return { kind: 'misuse', differs: differingParts(record.fingerprint, fingerprint) }
  }
  return decideByState(record)
}

function decideByState(record: ReadableRecord): Decision {
  switch (record.state) {
    case 'completed':
      return decideCompleted(record)
    case 'unknown':
      return { kind: 'unknown' }
    case 'in_progress':
      if (record.leaseLeftMs > 0) return { kind: 'running' }
      // A dead `resume` row that was not granted has an open intent that may not be repeated.
      return record.recovery === 'rerun' ? { kind: 'claim-again' } : { kind: 'sweep' }
    case 'failed_retryable':
    case 'pending':
      if (record.parked) return { kind: 'parked' }
      return record.dueInMs > 0 ? { kind: 'not-due', dueInMs: record.dueInMs } : { kind: 'claim-again' }
    default:
      return unreachable(record.state)
  }
}

/** With `encryption`, an outcome comes opened, or its row is unreadable. */
export const encryptedElsewhere = 'it is encrypted, and createLatchkey was given no encryption'

function decideCompleted({ outcome }: ReadableRecord): Decision {
  // A store reads row and outcome in one snapshot, and an expired row was handled above: nothing else may remove the outcome.
  if (outcome === undefined) return { kind: 'unreadable', why: 'it is completed, and no outcome is stored for it' }
  if (isSealedOutcome(outcome)) return { kind: 'unreadable', why: encryptedElsewhere }
  return outcome.body === undefined ? { kind: 'not-stored', outcome } : { kind: 'replay', outcome }
}
