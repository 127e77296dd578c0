/** The outbox's other end: relays and the targets they deliver to. */
export { createRelay, type Relay, type RelayCounts, type RelayOptions, type RelayTurn } from './relay.ts'
export type { RelayPolicy } from './policy.ts'
export { httpTarget, type HttpTargetOptions } from './http-target.ts'
export { functionTarget, type FunctionTargetOptions, type FunctionTargetResult } from './function-target.ts'
export type { Broker, DeliveryOptions, DeliveryResult, Target } from '../ports/broker.ts'
export type { Message } from '../ports/outbox.ts'
