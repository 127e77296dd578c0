/** What the engines of a simulation offer: one operation of each kind that recovers in its own way. */
import { identify } from '../../src/engine/request.ts'
import type { Answer, Attempt, ExecuteRequest } from '../../src/engine/answer.ts'
import type { AtomicExecution, GuardedExecution } from '../../src/engine/execution.ts'
import { fingerprintInput } from '../../src/engine/fingerprint/fingerprint.ts'
import { engine } from '../../src/engine/internal.ts'
import { json } from '../../src/engine/steps/json.ts'
import type { Latchkey } from '../../src/engine/latchkey.ts'
import { classifyNetworkFailure } from '../../src/engine/rules/network-failure.ts'
import type { DeferredOperation, GuardedOperation, PhasedOperation } from '../../src/engine/operation.ts'
import type { Definition } from '../../src/engine/steps/run-definition.ts'
import type { PhasedExecution } from '../../src/engine/steps/phased-execution.ts'
import { notExecuted } from '../../src/ports/errors.ts'
import type { History } from './history.ts'
import type { ServerTx } from './transactions.ts'
import type { Network } from './network.ts'
import type { Plan } from './plan.ts'
import { callTimeoutMs, type Provider } from './provider.ts'
import type { Runs } from './runs.ts'
import type { Process } from './world.ts'

export const operationNames = ['hold', 'rerun', 'atomic', 'dedup', 'plain', 'export'] as const
export type OperationName = (typeof operationNames)[number]

export const leaseMs = 6_000
const holdMsMax = 20_000
/** Short enough for rows to expire during the run. */
const shortRetentionMs = 40_000
/** With it a row outlives every message about it: one about an earlier generation, seen first now, would be taken for this one's. */
const tombstoneMs = 80_000

export interface Asked {
  readonly operation: OperationName
  readonly request: ExecuteRequest
  readonly input: Input
}

export interface Input {
  readonly id: string
  readonly amount: number
}

const everAsked = new Map<string, Asked>()

/** Kept for the next seed: hashing is the dearest part of a request here. */
export function askedFor(operation: OperationName, key: string, amount: number): Asked {
  const name = `${operation} ${key} ${amount}`
  const asked = everAsked.get(name) ?? newAsked(operation, key, amount)
  everAsked.set(name, asked)
  return asked
}

function newAsked(operation: OperationName, key: string, amount: number): Asked {
  const identity = identify({ scope: 'shop', operation, key })
  const input = { id: identity.id, amount }
  const fingerprint = fingerprintInput(input, {}, undefined)
  return { operation, input, request: { identity, key, fingerprint, description: undefined } }
}

export interface Shop {
  readonly process: Process
  readonly net: Network
  readonly provider: Provider
  readonly history: History
  readonly runs: Runs
  readonly plan: Plan
  /** A rolling upgrade: some processes declare 1, some 2. */
  readonly version: number
}

/** What may become unknown, and how everything is asked for. */
export interface Offered {
  readonly hold: GuardedOperation
  readonly withEffects: readonly (PhasedOperation<Input> | DeferredOperation<Input>)[]
  execute(asked: Asked): Promise<Answer>
}

export function declareOperations(latchkey: Latchkey<ServerTx, unknown>, shop: Shop): Offered {
  const { plan, version } = shop
  const short = { retentionMs: shortRetentionMs, allowShortRetention: true, leaseMs, holdMsMax }
  const kept = plan.tombstones
    ? ({ onExpiry: 'gone', tombstoneMs } as const)
    : { retentionMs: shortRetentionMs + tombstoneMs }
  const hold = latchkey.guarded('hold', { ...short, ...kept, onFailure: 'hold' })
  const rerun = latchkey.guarded('rerun', { ...short, onFailure: 'rerun', onInProgress: 'wait' })
  const atomic = latchkey.atomic('atomic', {})
  const declared = { version, leaseMs }
  const dedup = latchkey.phased('dedup', declared, watched(shop, payWithDedup(shop)))
  const plain = latchkey.phased('plain', declared, watched(shop, payWithout(shop)))
  const file = latchkey.deferred(
    'export',
    { ...declared, deadlineMs: plan.deadlineMs },
    watched(shop, exportFile(shop)),
  )
  const execute: Offered['execute'] = ({ operation, request, input }) => {
    switch (operation) {
      case 'hold':
        return hold[engine].execute(request, x => guardedWork(shop, x, input))
      case 'rerun':
        return rerun[engine].execute(request, x => guardedWork(shop, x, input))
      case 'atomic':
        return atomic[engine].execute(request, x => atomicWork(shop, x, input))
      case 'dedup':
        return dedup[engine].execute(request, { input: () => input })
      case 'plain':
        return plain[engine].execute(request, { input: () => input })
      case 'export':
        return file[engine].execute(request, { input: () => input })
    }
  }
  return { hold, withEffects: [dedup, plain, file], execute }
}

/** Any handler: it charges once, and may fail before or after. */
async function guardedWork(shop: Shop, x: GuardedExecution, { id, amount }: Input): Promise<Attempt> {
  const { provider, process, history } = shop
  history.started({ id, fence: x.fence, amount })
  try {
    const key = x.downstreamKey('work')
    const charge = { id, operation: x.operation, fence: x.fence, key, windowMs: undefined, intended: false }
    const result = await provider.call(process, { ...charge, effect: 'work' })
    return { kind: 'answered', outcome: json(201, { result, fence: x.fence }) }
  } catch (error) {
    // It holds what failed, unless the handler knows that nothing happened.
    const neverLeft = classifyNetworkFailure(error) === 'never-left'
    return { kind: 'threw', error: neverLeft ? notExecuted(error) : error }
  }
}

async function atomicWork(
  { net, process }: Shop,
  { tx, fence }: AtomicExecution<ServerTx>,
  { id }: Input,
): Promise<Attempt> {
  await write({ net, process }, tx, { id, name: 'order', value: `order ${fence}` })
  return { kind: 'answered', outcome: json(201, { order: `order ${fence}` }) }
}

/** A statement of the application. */
function write({ net, process }: Pick<Shop, 'net' | 'process'>, tx: ServerTx, row: ServerTx['writes'][number]) {
  return net.call(process, `write ${row.name}`, () => void tx.writes.push(row))
}

type Pay = Definition<ServerTx, Input>

function payWithDedup(shop: Shop): Pay {
  return async (x, input) => {
    const order = await x.phase('record', tx => writeOrder(shop, tx, { input, x }))
    const charge = await effect(shop, x, { input, name: 'charge', windowMs: shop.plan.windowMs })
    await x.phase('receipt', tx => x.outbox.append(tx, { topic: 'receipts', aggregate: input.id, payload: charge }))
    return json(201, { order, charge, attempt: x.attempt })
  }
}

function payWithout(shop: Shop): Pay {
  return async (x, input) => {
    const charge = await effect(shop, x, { input, name: 'charge', windowMs: undefined })
    const order = await x.phase('record', tx => writeOrder(shop, tx, { input, x }))
    const mail = await effect(shop, x, { input, name: 'mail', windowMs: shop.plan.windowMs })
    return json(201, { order, charge, mail, attempt: x.attempt })
  }
}

function exportFile(shop: Shop): Pay {
  return async (x, input) => {
    const order = await x.phase('record', tx => writeOrder(shop, tx, { input, x }))
    const rendered = await effect(shop, x, { input, name: 'render', windowMs: undefined })
    await x.phase('receipt', tx => x.outbox.append(tx, { topic: 'exports', aggregate: input.id, payload: rendered }))
    return json(201, { order, rendered })
  }
}

interface InPhase {
  readonly input: Input
  readonly x: PhasedExecution<ServerTx>
}

async function writeOrder(shop: Shop, tx: ServerTx, { input, x }: InPhase): Promise<string> {
  const value = `order ${x.fence}`
  await write(shop, tx, { id: input.id, name: 'order', value })
  return value
}

interface Effect {
  readonly input: Input
  readonly name: string
  readonly windowMs: number | undefined
}

function effect(shop: Shop, x: PhasedExecution<ServerTx>, given: Effect): Promise<string> {
  const dedup = given.windowMs === undefined ? {} : { dedup: { windowMs: given.windowMs } }
  const { id, operation, fence } = x
  const call = { id, operation, effect: given.name, fence, windowMs: given.windowMs, intended: true }
  return x.effect(given.name, { ...dedup, timeoutMs: callTimeoutMs }, ({ key }) =>
    shop.provider.call(shop.process, { ...call, key }),
  )
}

/** A run in a live process may still reach the provider: an operator waits for its end. */
function watched(shop: Shop, pay: Pay): Pay {
  return async (x, input) => {
    shop.history.started({ id: input.id, fence: x.fence, amount: input.amount })
    const end = shop.runs.begin(shop.process, input.id)
    if (x.recoveryPoint !== undefined) shop.history.saw('phased work was resumed after a finished step')
    try {
      return await pay(x, input)
    } finally {
      end()
    }
  }
}
