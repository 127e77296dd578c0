/** Calls to the cache. One that is slow or gone costs a request little: each call has a limit, and after some failures in a row none is made for a while. */
import type { Clock } from '../../../ports/clock.ts'
import { errorText, LatchkeyError } from '../../../ports/errors.ts'
import type { RedisArgument, Reply } from '../../shared/redis/driver.ts'
import type { ScriptText, Sender } from '../../shared/redis/sender.ts'

export type KeyAndArguments = readonly [key: string, ...args: RedisArgument[]]

export interface CacheCalls {
  /** Undefined: it did not answer in time, or was not asked because it failed before. */
  ask(script: ScriptText, [key, ...args]: KeyAndArguments): Promise<Reply | undefined>
  /** For what must not be left undone: asks whatever happened before, waits longer, and rejects with `cache-unavailable`. `cure`: what the error says to do. */
  insist(script: ScriptText, [key, ...args]: KeyAndArguments, cure?: string): Promise<Reply>
  /** How many calls of `ask` had no answer. */
  readonly failures: number
}

/** A look-up takes a fraction of a millisecond. What takes longer than this is better asked of the database. */
const askMs = 50
/** An operator waits for it, and the engine gives the whole act two seconds. */
const insistMs = 500
/** As the engine's circuit for stores: one lost connection fails a handful of calls at once. */
const failuresMax = 5
const probeEveryMs = 1_000

const nothingChanged = 'Nothing was changed in the database: try again when the cache answers'

export function cacheCalls(sender: Sender, clock: Clock): CacheCalls {
  let failures = 0
  let inRow = 0
  let nextProbeAtMs = 0

  function mayAsk(): boolean {
    if (inRow < failuresMax) return true
    const nowMs = clock.monotonicMs()
    if (nowMs < nextProbeAtMs) return false
    nextProbeAtMs = nowMs + probeEveryMs
    return true
  }

  return {
    async ask(script, [key, ...args]) {
      if (!mayAsk()) return undefined
      try {
        const reply = await within(clock, askMs, () => sender.byText(script, [key], args))
        inRow = 0
        return reply
      } catch {
        failures += 1
        inRow += 1
        if (inRow === failuresMax) nextProbeAtMs = clock.monotonicMs() + probeEveryMs
        return undefined
      }
    },
    async insist(script, [key, ...args], cure = nothingChanged) {
      try {
        return await within(clock, insistMs, () => sender.byText(script, [key], args))
      } catch (cause) {
        const message = `the cache of tieredStore failed: ${errorText(cause)}. ${cure}`
        // Not `store-unavailable`: the store has not failed, and its circuit must not open.
        throw new LatchkeyError('cache-unavailable', message, { cause })
      }
    },
    get failures() {
      return failures
    },
  }
}

/** A later reply is ignored. */
function within(clock: Clock, limitMs: number, run: () => Promise<unknown>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => reject(new Error(`no answer within ${limitMs} ms`)))
    const asked = new Promise<unknown>(settle => settle(run()))
    // Scripts of Latchkey return nothing else.
    asked.then(reply => resolve(reply as Reply), reject).finally(cancel)
  })
}
