/**
 * Somebody else's API. It may be out of reach, slow, silent, answer 500 after it has acted, or act long after the caller has
 * given up. Where it recognises keys it does so for a while, longer than it says by the most that a call can be late.
 */
import type { History } from './history.ts'
import { pauseMsMax, type Process, type World } from './world.ts'

export const callTimeoutMs = 3_000
const lateMsMax = 12_000
/** From the decision to call until the arrival: a pause, store calls of two seconds each, and the way there. */
const graceMs = pauseMsMax + 4 * 2_000 + lateMsMax

export interface ProviderCall {
  readonly id: string
  readonly effect: string
  readonly fence: number
  /** The downstream key. */
  readonly key: string
  /** What the provider promises; absent: it acts on every call. */
  readonly windowMs: number | undefined
  /** A guarded handler has no intent. */
  readonly intended: boolean
}

export interface Provider {
  call(process: Process, call: ProviderCall): Promise<string>
  /** A call to it is under way for this row. */
  underWay(id: string): boolean
  idle(): boolean
}

export function provider(world: World, history: History): Provider {
  const { chance } = world
  const remembered = new Map<string, { readonly result: string; readonly untilMs: number }>()
  const flying = new Map<string, number>()
  const fly = (id: string, by: 1 | -1) => flying.set(id, (flying.get(id) ?? 0) + by)

  function act({ id, effect, fence, key, windowMs, intended }: ProviderCall): string {
    if (intended) history.arrived({ id, effect, key })
    const known = remembered.get(key)
    if (windowMs !== undefined && known !== undefined && world.nowMs() < known.untilMs) {
      history.saw('a provider recognised a key')
      return known.result
    }
    const result = history.executed({ id, effect, fence })
    remembered.set(key, { result, untilMs: world.nowMs() + (windowMs ?? 0) + graceMs })
    return result
  }

  return {
    idle: () => [...flying.values()].every(calls => calls === 0),
    underWay: id => (flying.get(id) ?? 0) > 0,
    call: (process, call) =>
      new Promise((resolve, reject) => {
        if (!process.alive) return
        if (call.intended) history.called(call)
        const fault = chance.happens(world.faults.provider)
          ? chance.pick(['out of reach', 'silent', 'late', 'late', 'broken'])
          : undefined
        world.tell(() => `${process.name} → provider: ${call.effect} ${call.key.slice(0, 4)} ${fault ?? ''}`)
        const fail = (code: string, afterMs: number) =>
          world.deliver(process, afterMs, () => reject(Object.assign(new Error(code), { code })))
        if (fault === 'out of reach') return fail('ECONNREFUSED', chance.between(1, 200))
        fly(call.id, 1)
        const wayMs = fault === 'late' ? chance.between(1_000, lateMsMax) : chance.between(5, 400)
        world.at(wayMs, () => {
          fly(call.id, -1)
          // Sent by a process that is dead by now; its packets may have been lost with it.
          if (!process.alive && chance.happens(0.2)) return
          const result = act(call)
          world.tell(() => `  provider: ${call.effect} ${call.key.slice(0, 4)} is ${result}`)
          if (fault === 'broken') return fail('ECONNRESET', chance.between(1, 200))
          if (fault === 'silent') return fail('UND_ERR_HEADERS_TIMEOUT', chance.between(5_000, 25_000))
          world.deliver(process, chance.between(5, 400), () => resolve(result))
        })
      }),
  }
}
