/** The operations of the matrix, on a real store, with a provider whose charges are rows that no rollback takes back. */
import { createLatchkey, json, type Latchkey } from 'latchkey'
import type { Place } from '../processes/database.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'

/** Of a store with transactions, and of one without. */
export const kinds = ['hold', 'rerun', 'atomic', 'phased', 'phased-without-dedup'] as const
export const kindsWithoutTransactions = ['hold', 'rerun', 'effects', 'effects-without-dedup'] as const
export type Kind = (typeof kinds)[number] | (typeof kindsWithoutTransactions)[number]

const around = { 'claim:before': 1, 'claim:after': 1, 'finish:before': 1, 'finish:after': 1 }
const steps = {
  // Two phases around one effect.
  'phase:before-commit': 2,
  'phase:after-commit': 2,
  'intent:before': 1,
  'intent:after': 1,
  'effect:before-call': 1,
  'effect:after-call': 1,
  'result:before': 1,
  'result:after': 1,
}

// Two effects, and no phase.
const effects = {
  'intent:before': 2,
  'intent:after': 2,
  'effect:before-call': 2,
  'effect:after-call': 2,
  'result:before': 2,
  'result:after': 2,
}

/**
 * Every named place in the engine where a process can die on the way of that kind, both sides of every commit, and how often
 * one run comes by.
 */
export const points: Readonly<Record<Kind, Readonly<Record<string, number>>>> = {
  hold: around,
  rerun: around,
  atomic: { 'atomic:before-commit': 1, 'atomic:after-commit': 1 },
  phased: { ...around, ...steps },
  'phased-without-dedup': { ...around, ...steps },
  effects: { ...around, ...effects },
  'effects-without-dedup': { ...around, ...effects },
}

/** Short, because every killed process leaves a lease that has to end. */
export const leaseMs = 1_000

export function runner(place: Place): {
  latchkey: Latchkey<unknown, unknown>
  run(kind: Kind, label: string): Promise<unknown>
} {
  const latchkey = createLatchkey({ store: place.store, scope: () => 'acme', telemetry: silentTelemetry })
  const limits = { leaseMs, holdMsMax: 30_000 }
  const hold = latchkey.guarded('hold', { ...limits, onFailure: 'hold' })
  const rerun = latchkey.guarded('rerun', { ...limits, onFailure: 'rerun' })
  const declared = place.store.traits.transactional === true ? withTransactions() : withEffects()

  function withTransactions(): Declared {
    const atomic = latchkey.atomic('atomic')
    const phased = pay('phased', true)
    const careful = pay('phased-without-dedup', false)
    return {
      atomic: request => atomic.run(request, ({ tx }) => place.insert(tx, `${request.input}/record`)),
      phased: request => phased.run(request),
      'phased-without-dedup': request => careful.run(request),
    }
  }

  function withEffects(): Declared {
    const phased = payInEffects('effects', true)
    const careful = payInEffects('effects-without-dedup', false)
    return { effects: request => phased.run(request), 'effects-without-dedup': request => careful.run(request) }
  }

  function payInEffects(name: Kind, dedup: boolean) {
    return latchkey.phased<string>(name, { version: 1, leaseMs, steps: 'effects' }, async (x, label) => {
      const options = optionsOf(dedup)
      await x.effect('charge', options, ({ key }) => charge(`${label}/${key}`, dedup))
      await x.effect('receipt', options, ({ key }) => charge(`receipt ${label}/${key}`, dedup))
      return json(201, { label })
    })
  }

  function pay(name: Kind, dedup: boolean) {
    const options = optionsOf(dedup)
    return latchkey.phased<string>(name, { version: 1, leaseMs }, async (x, label) => {
      await x.phase('record', tx => place.insert(tx, `${label}/record`))
      await x.effect('charge', options, ({ key }) => charge(`${label}/${key}`, dedup))
      await x.phase('receipt', tx => place.insert(tx, `${label}/receipt`))
      return json(201, { label })
    })
  }

  async function charge(name: string, dedup: boolean): Promise<string> {
    if (dedup && (await place.executions(name)) > 0) return name
    await place.countExecution(name)
    await place.countExecution(`charges of ${name.split('/')[0]}`)
    return name
  }

  return {
    latchkey,
    run(kind, label) {
      const request = { scope: 'acme', key: label, input: label }
      switch (kind) {
        case 'hold':
          return hold.run(request, () => charge(`${label}/hold`, false))
        case 'rerun':
          return rerun.run(request, () => charge(`${label}/rerun`, true))
        default:
          return declared[kind]?.(request) ?? Promise.reject(new Error(`the store does not carry ${kind}`))
      }
    },
  }
}

interface Asked {
  readonly scope: string
  readonly key: string
  readonly input: string
}

type Declared = Partial<Record<Kind, (request: Asked) => Promise<unknown>>>

function optionsOf(dedup: boolean): { timeoutMs: number; dedup?: { windowMs: number } } {
  return { timeoutMs: 500, ...(dedup ? { dedup: { windowMs: 3_600_000 } } : {}) }
}
