export type { Answer, Attempt, ExecuteRequest, Refusal, RefusalCode, Work } from './engine/answer.ts'
export type { AtomicExecution, Execution, GuardedExecution } from './engine/execution.ts'
export type { FingerprintOptions, FingerprintPart, HmacKey, HmacKeys } from './engine/fingerprint/fingerprint.ts'
export { type IdentityParts, type Scope, singleTenant } from './engine/request.ts'
export {
  createLatchkey,
  type Latchkey,
  type LatchkeyOptions,
  type LatchkeyWithoutTransactions,
} from './engine/latchkey.ts'
export type { Closed } from './engine/runtime.ts'
export { json } from './engine/steps/json.ts'
export type { JsonOf, Storable } from './engine/json-of.ts'
export { classifyNetworkFailure, type NetworkFailure } from './engine/rules/network-failure.ts'
export type {
  AtomicOperation,
  AtomicRunRequest,
  DeferredOperation,
  DeferredValue,
  DefinedOperation,
  GuardedOperation,
  HttpOptions,
  Kept,
  Operation,
  PhasedOperation,
  PhasedRunRequest,
  PhasedValue,
  ProblemAnswer,
  ProblemCode,
  ProblemDetails,
  RunRequest,
  RunResult,
} from './engine/operation.ts'
export type { AuditReadOptions, ReadAuditRecords } from './engine/audit/read.ts'
export type { AuditOptions } from './engine/audit/trail.ts'
export type { Erase, Erased, EraseOptions } from './engine/store/erase.ts'
export type { OutboxMessage } from './engine/outbox.ts'
export type { EncryptionOptions, Kms } from './engine/sealed/keyring.ts'
export type { Rewrap, RewrapOptions, RewrapProgress } from './engine/sealed/rewrap.ts'
export type { Definition, EffectsDefinition } from './engine/steps/run-definition.ts'
export type { EffectCall, EffectOptions, EffectsExecution, PhasedExecution } from './engine/steps/phased-execution.ts'
export type { DeferredOptions } from './engine/kinds/deferred.ts'
export type { AllSteps, EffectsOnly, PhasedOptions } from './engine/kinds/phased.ts'
export type { InspectedRow, OpenEffect } from './engine/inspected-row.ts'
export type { FindWhat, OperatorVerdict, Operators, RowName } from './engine/operator.ts'
export type { Status, Statuses } from './engine/status.ts'
export type { LimitOptions } from './engine/limits/limits.ts'
export type { GuardedOptions, KeyFormat, KeyLimits, KeySource, OperationOptions } from './engine/options.ts'
export { type Clock, systemClock } from './ports/clock.ts'
export { type ErrorCode, isLatchkeyError, LatchkeyError, notExecuted, outcomeUnknown } from './ports/errors.ts'
export type { Header, Outcome } from './ports/outcome.ts'
export { consoleTelemetry } from './ports/console-telemetry.ts'
export { type Attributes, type Metric, silentTelemetry, type SpanName, type Telemetry } from './ports/telemetry.ts'

// What a store of your own is made of; `@latchkey/conformance` asks for it.
export type {
  Act,
  AtomicRequest,
  AuditEntry,
  Claim,
  ClaimRequest,
  ClaimResult,
  EnqueueRequest,
  EnqueueResult,
  Evidence,
  Faculty,
  Failure,
  ForgetResult,
  FullStore,
  GrantedFrom,
  HandlerEnd,
  Identity,
  Inspection,
  KeyRecord,
  Listing,
  LostClaim,
  OperationKind,
  OwnerResult,
  Page,
  ReadableRecord,
  Recorded,
  Recovery,
  Reservation,
  Resumable,
  RowState,
  SettleResult,
  State,
  Store,
  StoreCheck,
  StoreFault,
  StoreTraits,
  StoreWithoutTransactions,
  Swept,
  TakeOver,
  TransactionEnd,
  Transactor,
  UnparkResult,
  UnreadableRecord,
  WrongState,
} from './ports/store.ts'
export type {
  EffectDone,
  Intent,
  Journal,
  PhaseDone,
  Phases,
  Step,
  Steps,
  StepState,
  UnreadableJournal,
  WorkInput,
} from './ports/steps.ts'
export type {
  Batch,
  DeliveryEnd,
  FailedDelivery,
  LaneLease,
  LaneResult,
  Message,
  NewMessage,
  Outbox,
  OutboxLag,
  ParkedMessage,
  Redrive,
  Settlement,
} from './ports/outbox.ts'
export type {
  ApplyOptions,
  ApplyResult,
  EffectRef,
  EvidenceSource,
  EvidenceVerdict,
  Finding,
  FoundVerdict,
  KeepResult,
  LastLedgerRun,
  LedgerCounts,
  LedgerRun,
  Ledgers,
  Lookup,
  LookupClaim,
  Reconciliation,
  Subject,
  UnknownSummary,
} from './ports/reconciliation.ts'
export type {
  AuditedEnd,
  AuditLine,
  AuditPage,
  AuditQuery,
  AuditRecords,
  Misuse,
  TakenLines,
} from './ports/faculties/audit-records.ts'
export type { ErasedBatch, Erasure, ErasureLeft } from './ports/faculties/erasure.ts'
export type {
  DiscardResult,
  InboxAct,
  InboxInspection,
  InboxRedrive,
  ListedInboxMessage,
  NewParkedInboxMessage,
  ParkedCause,
  ParkedInbox,
  ParkedInboxHead,
  ParkedInboxListing,
  ParkedInboxMessage,
  ParkedInboxPage,
  RedriveEnd,
  RedriveResult,
  TakenInboxMessage,
} from './ports/faculties/inbox.ts'
export type { Leased, Quotas, ScopeRows, Tokens } from './ports/faculties/quotas.ts'
export type { StoreObserver } from './ports/store-observer.ts'
export type * from './ports/faculties/admin.ts'
export type { NewReference, References, StoredReference } from './ports/faculties/references.ts'
export type {
  StoredMessage,
  StoredOutcome,
  StoredParked,
  StoredReferenceValue,
  StoredRef,
  StoredText,
  StoredValue,
  ValuePage,
  Values,
} from './ports/faculties/values.ts'
