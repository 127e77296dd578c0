/**
 * The handler's stream, watched on its way through the interceptor. rxjs accepts any object that says by its observable symbol
 * that it can be subscribed to, so none of its classes is needed here.
 */
import type { Observable, Observer, Subscription } from './driver.ts'

export interface HandlerWatch {
  /** The handler and everything inside of this interceptor has ended. */
  readonly ended: boolean
  /** Somebody outside stopped listening before the handler gave anything: a timeout, most likely. */
  readonly left: boolean
  readonly error: unknown
  /** Fulfils at the end, in whatever way. */
  readonly over: Promise<void>
}

/** `failed` is told of an error before Nest's exception filters are. */
export function followHandler(
  handled: Observable,
  failed: (error: unknown) => void,
): { readonly watch: HandlerWatch; readonly stream: Observable } {
  let settle = () => {}
  const over = new Promise<void>(resolve => (settle = resolve))
  const watch = { ended: false, left: false, error: undefined as unknown, over }
  const end = () => {
    watch.ended = true
    settle()
  }

  function subscribe(observer: Observer): Subscription {
    let emitted = false
    let subscription: Subscription | undefined
    const stop = () => {
      end()
      subscription?.unsubscribe()
    }
    subscription = handled.subscribe({
      next(value) {
        emitted = true
        if (watch.left) return stop()
        observer.next(value)
      },
      error(error) {
        watch.error = error ?? new Error('the handler threw nothing')
        failed(watch.error)
        end()
        observer.error(error)
      },
      complete() {
        end()
        observer.complete()
      },
    })
    return {
      unsubscribe() {
        if (watch.ended) return
        if (emitted) return stop()
        // A promise goes on although nobody listens, so its end is waited for: a retry must not run beside it.
        watch.left = true
      },
    }
  }
  return { watch, stream: interop(subscribe) }
}

/** One `undefined`, as from a handler that returns nothing. Empty would not do: Nest takes the last value. */
export function nothing(): Observable {
  return interop(observer => {
    observer.next(undefined)
    observer.complete()
    return { unsubscribe() {} }
  })
}

function interop(subscribe: (observer: Observer) => Subscription): Observable {
  const stream: Observable = { subscribe }
  const itself = () => stream
  // rxjs takes the symbol where a polyfill has added it, and the name elsewhere.
  const symbol: unknown = Reflect.get(Symbol, 'observable')
  return Object.assign(stream, { '@@observable': itself }, typeof symbol === 'symbol' ? { [symbol]: itself } : {})
}
