/** The operations of the matrix, on a real store, with a provider whose charges are rows that no rollback takes back. */
import { createLatchkey, json, type Latchkey } from 'latchkey'
import type { Place } from '../processes/place.ts'

export const kinds = ['hold', 'rerun', 'atomic', 'phased', 'phased-without-dedup'] as const
export type Kind = (typeof kinds)[number]

/** Every named place in the engine where a process can die on the way of that kind: both sides of every commit. */
export const points: Readonly<Record<Kind, readonly string[]>> = {
  hold: ['claim:before', 'claim:after', 'finish:before', 'finish:after'],
  rerun: ['claim:before', 'claim:after', 'finish:before', 'finish:after'],
  atomic: ['atomic:before-commit', 'atomic:after-commit'],
  phased: phasedPoints(),
  'phased-without-dedup': phasedPoints(),
}

function phasedPoints(): readonly string[] {
  const phase = ['phase:before-commit', 'phase:after-commit']
  const effect = [
    'intent:before',
    'intent:after',
    'effect:before-call',
    'effect:after-call',
    'result:before',
    'result:after',
  ]
  return ['claim:before', 'claim:after', ...phase, ...effect, 'finish:before', 'finish:after']
}

/** Short, because every killed process leaves a lease that has to end. */
export const leaseMs = 1_000

export function runner(place: Place): {
  latchkey: Latchkey<unknown, unknown>
  run(kind: Kind, label: string): Promise<unknown>
} {
  const latchkey = createLatchkey({ store: place.store, scope: () => 'acme' })
  const limits = { leaseMs, holdMsMax: 30_000 }
  const hold = latchkey.guarded('hold', { ...limits, onFailure: 'hold' })
  const rerun = latchkey.guarded('rerun', { ...limits, onFailure: 'rerun' })
  const atomic = latchkey.atomic('atomic')
  const phased = pay('phased', true)
  const careful = pay('phased-without-dedup', false)

  function pay(name: Kind, dedup: boolean) {
    const options = { timeoutMs: 500, ...(dedup ? { dedup: { windowMs: 3_600_000 } } : {}) }
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
        case 'atomic':
          return atomic.run(request, ({ tx }) => place.insert(tx, `${label}/record`))
        case 'phased':
          return phased.run(request)
        case 'phased-without-dedup':
          return careful.run(request)
      }
    },
  }
}
