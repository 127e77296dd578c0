/** Relays, which deliver the messages of the outbox, and their targets. */
export { createRelay, type Relay, type RelayCounts, type RelayOptions, type RelayTurn } from './relay.ts'
export type { RelayPolicy } from './policy.ts'
export { httpTarget, type HttpTargetOptions } from './http-target.ts'
export { functionTarget, type FunctionTargetOptions, type FunctionTargetResult } from './function-target.ts'
export type { DeliveryOptions, DeliveryResult, RelayTiming, Target } from '../ports/target.ts'
export type { Message } from '../ports/outbox.ts'
