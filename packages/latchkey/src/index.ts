export type { Answer, Attempt, ExecuteRequest, Refusal, RefusalCode, Work } from './engine/answer.ts'
export type { AtomicExecution, Execution, GuardedExecution } from './engine/execution.ts'
export type { FingerprintOptions, FingerprintPart } from './engine/fingerprint/fingerprint.ts'
export { type IdentityParts, type Scope, singleTenant } from './engine/identity.ts'
export { type Closed, createLatchkey, type Latchkey, type LatchkeyOptions } from './engine/latchkey.ts'
export { json } from './engine/steps/json.ts'
export { classifyNetworkFailure, type NetworkFailure } from './engine/rules/network-failure.ts'
export type {
  AtomicOperation,
  AtomicRunRequest,
  DeferredOperation,
  DeferredValue,
  DefinedOperation,
  GuardedOperation,
  HttpOptions,
  Operation,
  OperationKind,
  PhasedOperation,
  PhasedRunRequest,
  PhasedValue,
  RunRequest,
} from './engine/operation.ts'
export type { OutboxMessage } from './engine/outbox-message.ts'
export type { Definition } from './engine/kinds/phased.ts'
export type { EffectCall, EffectOptions, PhasedExecution } from './engine/steps/phased-execution.ts'
export type { DeferredOptions, PhasedOptions } from './engine/kinds/phased-operation.ts'
export type { OperatorVerdict, Operators, RowName } from './engine/operator.ts'
export type { Status, Statuses } from './engine/status.ts'
export type { GuardedOptions, KeyFormat, OperationOptions } from './engine/options.ts'
export { type Clock, systemClock } from './ports/clock.ts'
export { type ErrorCode, isLatchkeyError, LatchkeyError, notExecuted, outcomeUnknown } from './ports/errors.ts'
export type { Header, Outcome } from './ports/outcome.ts'
export type { EvidenceSource, EvidenceVerdict } from './ports/reconciliation.ts'
export type { Act, AuditEntry, Evidence, Inspection, KeyRecord, Page, State, Store } from './ports/store.ts'
export type { ReadableRecord, RowState, UnreadableRecord } from './ports/store.ts'
export type { Attributes, Metric, Telemetry } from './ports/telemetry.ts'
