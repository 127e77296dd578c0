/** Single delivery attempts, each with a time limit; all of them are aborted when the lane is lost. */
import type { DeliveryOptions, DeliveryResult, Target } from '../ports/target.ts'
import type { Clock } from '../ports/clock.ts'
import type { Message } from '../ports/outbox.ts'

export interface Attempts {
  /** Never rejects. */
  deliver(target: Pick<Target, 'deliver'>, message: Message): Promise<DeliveryResult>
  close(): void
}

export interface AttemptsOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly lost: AbortSignal
}

/** One listener on `lost` serves all attempts. */
export function openAttempts({ clock, timeoutMs, lost }: AttemptsOptions): Attempts {
  const giveUps = new Set<(reason: string) => void>()
  const giveUpAll = () => {
    for (const giveUp of giveUps) giveUp('lease-lost')
  }
  lost.addEventListener('abort', giveUpAll, { once: true })

  /** Does not wait for a target that ignores its signal: what it delivers later is a duplicate with the same dedup id. */
  function deliver(target: Pick<Target, 'deliver'>, message: Message): Promise<DeliveryResult> {
    return new Promise(resolve => {
      const signal = lazySignal()
      const end = (result: DeliveryResult) => {
        cancel()
        giveUps.delete(giveUp)
        resolve(result)
      }
      const giveUp = (reason: string) => {
        signal.abort(reason)
        end({ kind: 'failed', error: reason })
      }
      const fail = (error: unknown) => end({ kind: 'failed', error: errorCode(error) })
      const cancel = clock.after(timeoutMs, () => giveUp('timeout'))
      giveUps.add(giveUp)
      try {
        Promise.resolve(target.deliver(message, signal.options)).then(end, fail)
      } catch (error) {
        fail(error)
      }
    })
  }

  return { deliver, close: () => lost.removeEventListener('abort', giveUpAll) }
}

/** Created on first access: creating a signal takes longer than the rest of a delivery to a function, and few functions use it. */
function lazySignal(): { readonly options: DeliveryOptions; abort(reason: string): void } {
  let controller: AbortController | undefined
  let abortedFor: string | undefined
  const options = {
    get signal() {
      if (controller !== undefined) return controller.signal
      controller = new AbortController()
      if (abortedFor !== undefined) controller.abort(abortedFor)
      return controller.signal
    },
  }
  const abort = (reason: string) => {
    abortedFor = reason
    controller?.abort(reason)
  }
  return { options, abort }
}

/** A name or code, never a message: that may contain personal data, and operators see the list of parked messages. */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'error'
  const cause = 'code' in error ? error : (error.cause ?? error)
  const code: unknown = typeof cause === 'object' && cause !== null ? Reflect.get(cause, 'code') : undefined
  return typeof code === 'string' ? code : error.name
}
