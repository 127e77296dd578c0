/** What nobody can know, found out: look-ups, webhooks and ledgers as evidence about unknown outcomes. */
export { createReconciler, type EffectfulOperation, type Reconciler } from './reconciler.ts'
export type { ReconcilerHost, Settled } from './parts.ts'
export type {
  EffectQuestion,
  GuardedQuestion,
  GuardedRegistration,
  LookupOptions,
  PhasedRegistration,
  Question,
  WholeQuestion,
} from './registration.ts'
export type {
  EffectFound,
  EffectVerdict,
  NeverHappened,
  OutcomeFound,
  OutcomeVerdict,
  Statement,
  StillUnknown,
  SubjectName,
} from './verdict.ts'
export type { WebhookHandler, WebhookOptions } from './webhook.ts'
export type { NodeWebhookRequest } from './fetch-request.ts'
export { nodeWebhook, type NodeWebhook, type NodeWebhookResponse } from './node-webhook.ts'
export {
  type SignatureOptions,
  standardWebhooks,
  stripeWebhooks,
  type Verified,
  type VerifyWebhook,
  type WebhookMessage,
} from './signatures.ts'
export type { LedgerOptions, LedgerReport } from './ledger.ts'
export type { LedgerEntry, LedgerPair } from './merge.ts'
