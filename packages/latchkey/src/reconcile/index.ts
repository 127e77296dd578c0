/** Settles unknown outcomes by evidence: look-ups, webhooks and ledgers. */
export { createReconciler, type EffectfulOperation, type Reconciler } from './reconciler.ts'
export type { ReconcilerHost, Settled } from './host.ts'
export type {
  EffectQuestion,
  GuardedQuestion,
  GuardedRegistration,
  LookupOptions,
  PhasedRegistration,
  Question,
  OutcomeQuestion,
} from './registration.ts'
export type {
  EffectFound,
  EffectVerdict,
  NeverHappened,
  OutcomeFound,
  OutcomeVerdict,
  EvidenceInput,
  StillUnknown,
  RowReference,
} from './verdict.ts'
export type { WebhookHandler, WebhookOptions } from './webhooks/handler.ts'
export type { NodeWebhookRequest } from './webhooks/fetch-request.ts'
export { nodeWebhook, type NodeWebhook, type NodeWebhookResponse } from './webhooks/node-webhook.ts'
export {
  type SignatureOptions,
  standardWebhooks,
  stripeWebhooks,
  type Verified,
  type VerifyWebhook,
  type WebhookMessage,
} from './webhooks/signatures.ts'
export type { LedgerOptions, LedgerReport } from './ledgers/compare.ts'
export type { LedgerEntry, LedgerPair } from './ledgers/merge.ts'
