/** What the options of a Latchkey and of its operations may be. */
import type { Check, ChecksOf } from '../ports/check-options.ts'
import {
  anything,
  byteCount,
  callable,
  count,
  durationUpTo,
  either,
  flag,
  having,
  listOf,
  nested,
  oneOf,
  pattern,
  recordOf,
  secret,
  storedMs,
  text,
  waitedMs,
  wholeUpTo,
} from '../ports/option-kinds.ts'
import type { AuditReadOptions } from './audit/read.ts'
import type { AuditOptions } from './audit/trail.ts'
import type { EraseOptions } from './store/erase.ts'
import type { FingerprintOptions } from './fingerprint/fingerprint.ts'
import type { LatchkeyOptions } from './latchkey.ts'
import type { AtomicRunRequest, HttpOptions, RunRequest } from './operation.ts'
import type { OutboxMessage } from './outbox.ts'
import type { EncryptionOptions } from './sealed/keyring.ts'
import type { RewrapOptions } from './sealed/rewrap.ts'
import type { EffectOptions } from './steps/phased-execution.ts'
import type { DeferredOptions } from './kinds/deferred.ts'
import type { EffectsOnly, PhasedOptions } from './kinds/phased.ts'
import type { LimitOptions } from './limits/limits.ts'
import type { GuardedOptions, KeyLimits, OperationOptions } from './options.ts'
import { isRowId } from './request.ts'

const texts = listOf(text)
const bytes = { wants: 'bytes', fits: (value: unknown): boolean => value instanceof Uint8Array }
const hmacKey = either(text, bytes)
const hmacKeys: Check = {
  wants: 'a text, bytes, or both { current, previous } of these',
  fits: value => hmacKey.fits(value) || isKeyPair(value),
}

function isKeyPair(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.keys(value).toSorted().join() !== 'current,previous')
    return false
  return Object.values(value).every(key => hmacKey.fits(key))
}

/** A year: work that no worker has begun by then is abandoned. */
const deadlineMs = durationUpTo(366 * 24 * 3_600_000, 'a year')
/** Ten years: no known provider recognises a key for longer. */
const windowMs = durationUpTo(10 * 366 * 24 * 3_600_000, '10 years')

const fingerprintChecks: ChecksOf<FingerprintOptions> = {
  include: texts,
  includeIfPresent: texts,
  exclude: texts,
  headers: texts,
  hmac: secret(hmacKeys),
  custom: callable,
}

const headerName = {
  wants: 'the name of a header',
  fits: (value: unknown): boolean => typeof value === 'string' && /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value),
}
const keyFormatChecks: ChecksOf<KeyLimits> = { minLength: count, maxLength: count, pattern, refuseEmails: flag }

const limitChecks: ChecksOf<LimitOptions> = {
  newKeysPerMinute: count,
  lookupsPerMinute: count,
  mismatchesPerMinute: count,
  openKeys: count,
  storedBytes: wholeUpTo(2 ** 50),
  shared: flag,
}

/** Of every kind of operation. */
const sharedChecks: ChecksOf<Omit<OperationOptions, 'onInProgress' | 'waitMs' | 'sensitive'>> = {
  retentionMs: storedMs,
  allowShortRetention: flag,
  storeStatus: callable,
  outcomeBytesMax: byteCount,
  outcomeVersion: count,
  upgrade: callable,
  describe: callable,
  key: either(callable, nested({ header: headerName })),
  keyFormat: either(oneOf('uuid', 'ulid'), nested(keyFormatChecks)),
  keyNamespace: oneOf('operation', 'scope'),
  onMissingKey: oneOf('refuse', 'run-unprotected'),
  limits: nested(limitChecks),
  fingerprint: nested(fingerprintChecks),
  bodyBytesMax: byteCount,
  methods: texts,
  authorizeReplay: callable,
  onExpiry: oneOf('run', 'gone'),
  tombstoneMs: storedMs,
  keyAgeMsMax: storedMs,
  requestTime: callable,
  requestAgeMsMax: storedMs,
}

export const operationChecks: ChecksOf<OperationOptions> = {
  ...sharedChecks,
  sensitive: flag,
  onInProgress: oneOf('refuse', 'wait', 'accept'),
  waitMs: waitedMs,
}

export const guardedChecks: ChecksOf<GuardedOptions> = {
  ...operationChecks,
  onFailure: oneOf('hold', 'rerun', 'store'),
  leaseMs: waitedMs,
  holdMsMax: waitedMs,
  onStoreDown: oneOf('refuse', 'run-unprotected'),
}

export const phasedChecks: ChecksOf<PhasedOptions & EffectsOnly> = {
  ...operationChecks,
  version: count,
  steps: oneOf('effects'),
  leaseMs: waitedMs,
  respondAsync: nested({ deadlineMs }),
}

export const deferredChecks: ChecksOf<DeferredOptions & EffectsOnly> = {
  ...sharedChecks,
  version: count,
  steps: oneOf('effects'),
  leaseMs: waitedMs,
  deadlineMs,
}

const httpChecks: ChecksOf<HttpOptions> = {
  profile: oneOf('ietf', 'stripe'),
  problemBase: text,
  strictSyntax: flag,
  expiresHeader: flag,
  neverStore: texts,
  statusPath: callable,
  onReplay: callable,
  renderProblem: callable,
}

const kms = having('a KMS', 'wrap', 'unwrap')
const keyOf32 = {
  wants: '32 bytes',
  fits: (value: unknown): boolean => value instanceof Uint8Array && value.length === 32,
}
const encryptionChecks: ChecksOf<EncryptionOptions> = {
  keys: secret(recordOf(either(keyOf32, kms))),
  current: text,
  indexKey: secret(keyOf32),
  plainValues: oneOf('read', 'refuse'),
}

const auditChecks: ChecksOf<AuditOptions> = {
  records: oneOf('changes', 'all'),
  retentionMs: storedMs,
  sink: callable,
}

export const latchkeyChecks: ChecksOf<LatchkeyOptions<unknown, unknown>> = {
  // Checked by name in createLatchkey.
  store: anything,
  scope: anything,
  http: nested(httpChecks),
  telemetry: having('an object', 'count', 'observe', 'report'),
  storeTimeoutMs: waitedMs,
  limits: nested(limitChecks),
  maintenance: flag,
  encryption: nested(encryptionChecks),
  audit: nested(auditChecks),
  clock: having('a clock', 'nowMs', 'monotonicMs', 'after', 'random', 'randomId'),
}

export const effectChecks: ChecksOf<EffectOptions> = {
  dedup: nested({ windowMs }),
  timeoutMs: waitedMs,
  classify: callable,
}

const headerValues = recordOf({ wants: 'a text', fits: value => typeof value === 'string' })
/** A header without a name marks a message that is encrypted. */
const namedHeaders: Check = {
  ...headerValues,
  wants: 'an object whose names are not empty',
  fits: value => headerValues.fits(value) && !Object.hasOwn(Object(value), ''),
}

export const messageChecks: ChecksOf<OutboxMessage> = {
  topic: text,
  aggregate: text,
  key: text,
  payload: anything,
  headers: namedHeaders,
  // Checked where it becomes text.
  scope: anything,
}

/** Of work that is done in batches. */
export const batchChecks: ChecksOf<RewrapOptions> = { batch: wholeUpTo(1_000), onProgress: callable }
export const eraseChecks: ChecksOf<EraseOptions> = { ...batchChecks, scope: anything }

const rowId: Check = { wants: 'the id of a row', fits: value => typeof value === 'string' && isRowId(value) }
const instantMs: Check = { wants: 'a time in milliseconds since 1970', fits: value => Number.isFinite(value) }
export const auditReadChecks: ChecksOf<AuditReadOptions> = {
  // Checked where it becomes text.
  scope: anything,
  id: secret(rowId),
  fromMs: instantMs,
  limit: wholeUpTo(1_000),
  after: text,
}

/** Their values are checked where they are used; here only their names count. */
export const runChecks: ChecksOf<RunRequest> = { scope: anything, key: anything, input: anything }
export const atomicRunChecks: ChecksOf<AtomicRunRequest> = { ...runChecks, tx: anything }
