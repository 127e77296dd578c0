/**
 * Somebody else's API. It may be out of reach, slow, silent, answer 500 after it has acted, or act long after the caller has
 * given up. Where it recognises keys it does so for a while, longer than it promises by the most that a call can be late. It keeps
 * books, by key: a look-up gets what is in them, which proves nothing about what is still on its way.
 */
import type { History } from './history.ts'
import { pauseMsMax, type Process, type World } from './world.ts'

export const callTimeoutMs = 3_000
const lateMsMax = 16_000
/** From the decision to call until the arrival: a pause, store calls of two seconds each, and the way there. */
const graceMs = pauseMsMax + 4 * 2_000 + lateMsMax
/** Longer than that after a row became unknown nothing arrives: its lease was over by then. */
export const quarantineMs: number = graceMs
/** How often a request is refused for good. */
const declines = 0.08

export interface ProviderCall {
  readonly id: string
  readonly operation: string
  readonly effect: string
  readonly fence: number
  /** The downstream key. */
  readonly key: string
  /** What the provider promises; absent: it acts on every call. */
  readonly windowMs: number | undefined
  /** A guarded handler has no intent. */
  readonly intended: boolean
}

/** An entry in its books. */
export interface Entry extends Pick<ProviderCall, 'id' | 'operation' | 'effect' | 'key' | 'intended'> {
  readonly kind: 'happened' | 'declined'
  readonly result: string
  readonly atMs: number
}

export type Found = Entry | 'nothing' | 'inconclusive'

export interface Provider {
  call(process: Process, call: ProviderCall): Promise<string>
  /** What became of this key since then? */
  lookUp(process: Process, asked: { readonly key: string; readonly sinceMs: number }): Promise<Found>
  /** The truth. */
  entry(asked: { readonly key: string; readonly sinceMs: number }): Entry | undefined
  /** A call to it is under way for this row. */
  underWay(id: string): boolean
  idle(): boolean
}

export interface ProviderOptions {
  readonly world: World
  readonly history: History
  /** No look-up is ever answered. */
  readonly asksInVain: boolean
  readonly announce: (entry: Entry) => void
}

/** What is there twice comes up twice as often. */
const chargeFaults = ['out of reach', 'no connection', 'no connection', 'silent', 'late', 'late', 'broken'] as const

export function provider({ world, history, asksInVain, announce }: ProviderOptions): Provider {
  const { chance } = world
  const books = new Map<string, readonly Entry[]>()
  const remembered = new Map<string, { readonly result: string; readonly untilMs: number }>()
  const flying = new Map<string, number>()
  const fly = (id: string, by: 1 | -1) => flying.set(id, (flying.get(id) ?? 0) + by)

  function act({ id, operation, effect, fence, key, windowMs, intended }: ProviderCall): string {
    if (intended) history.arrived({ id, effect, key })
    const known = remembered.get(key)
    if (windowMs !== undefined && known !== undefined && world.nowMs() < known.untilMs) {
      history.saw('a provider recognised a key')
      return known.result
    }
    const kind = chance.happens(declines) ? 'declined' : 'happened'
    const result = history.acted({ id, effect, fence, kind })
    remembered.set(key, { result, untilMs: world.nowMs() + (windowMs ?? 0) + graceMs })
    const entry: Entry = { id, operation, effect, key, intended, kind, result, atMs: world.nowMs() }
    books.set(key, [...(books.get(key) ?? []), entry])
    announce(entry)
    return result
  }

  const entry: Provider['entry'] = ({ key, sinceMs }) => books.get(key)?.findLast(({ atMs }) => atMs >= sinceMs)

  return {
    entry,
    idle: () => [...flying.values()].every(calls => calls === 0),
    underWay: id => (flying.get(id) ?? 0) > 0,
    call: (process, call) =>
      new Promise((resolve, reject) => {
        if (!process.alive) return
        if (call.intended) history.called(call)
        const fault = faultOf(world, chargeFaults)
        world.trace(() => `${process.name} → provider: ${call.effect} ${call.key.slice(0, 4)} ${fault ?? ''}`)
        const fail = failing(world, process, reject)
        if (fault === 'out of reach') return fail('ECONNREFUSED', chance.between(1, 200))
        // It never left, and its caller learns that late.
        if (fault === 'no connection') return fail('UND_ERR_CONNECT_TIMEOUT', chance.between(2_000, 15_000))
        fly(call.id, 1)
        const wayMs = fault === 'late' ? chance.between(1_000, lateMsMax) : chance.between(5, 400)
        world.at(wayMs, () => {
          fly(call.id, -1)
          // Sent by a process that is dead by now; its packets may have been lost with it.
          if (!process.alive && chance.happens(0.2)) return
          const result = act(call)
          world.trace(() => `  provider: ${call.effect} ${call.key.slice(0, 4)} is ${result}`)
          if (fault === 'broken') return fail('ECONNRESET', chance.between(1, 200))
          if (fault === 'silent') return fail('UND_ERR_HEADERS_TIMEOUT', chance.between(5_000, 25_000))
          world.deliver(process, chance.between(5, 400), () => resolve(result))
        })
      }),
    lookUp: (process, asked) =>
      new Promise((resolve, reject) => {
        if (!process.alive) return
        const fault = faultOf(world, ['out of reach', 'silent', 'slow', 'vague'])
        const fail = failing(world, process, reject)
        if (asksInVain || fault === 'out of reach') return fail('ECONNREFUSED', chance.between(1, 200))
        world.at(chance.between(5, 400), () => {
          const found = entry(asked) ?? 'nothing'
          const answer = typeof found === 'string' ? found : found.result
          world.trace(() => `  provider to ${process.name} about ${asked.key.slice(0, 4)}: ${answer} ${fault ?? ''}`)
          if (fault === 'silent') return fail('UND_ERR_HEADERS_TIMEOUT', chance.between(5_000, 25_000))
          const backMs = fault === 'slow' ? chance.between(1_000, 6_000) : chance.between(5, 400)
          world.deliver(process, backMs, () => resolve(fault === 'vague' ? 'inconclusive' : found))
        })
      }),
  }
}

function faultOf<Fault>({ chance, faults }: World, kinds: readonly [Fault, ...Fault[]]): Fault | undefined {
  return chance.happens(faults.provider) ? chance.pick(kinds) : undefined
}

function failing({ deliver }: World, process: Process, reject: (error: Error) => void) {
  return (code: string, afterMs: number) =>
    deliver(process, afterMs, () => reject(Object.assign(new Error(code), { code })))
}
