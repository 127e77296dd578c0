/**
 * The handler's stream, watched on its way through the interceptor. rxjs accepts any object with the observable symbol, so none of its
 * classes is needed here.
 */
import { thrownError } from '../node/capture.ts'
import type { HandlerStream, StreamObserver, StreamSubscription } from './driver.ts'

export interface HandlerWatch {
  /** The handler and everything inside of this interceptor has ended. */
  readonly ended: boolean
  /** An outer interceptor unsubscribed before the handler emitted anything: a timeout, most likely. */
  readonly left: boolean
  readonly error: unknown
  /** Fulfils at the end, in whatever way. */
  readonly over: Promise<void>
}

/** `failed` is called with an error before Nest's exception filters see it. True: it was answered otherwise, and they do not. */
export function followHandler(
  handled: HandlerStream,
  failed: (error: unknown) => Promise<boolean> | undefined,
): { readonly watch: HandlerWatch; readonly stream: HandlerStream } {
  let settle = () => {}
  const over = new Promise<void>(resolve => (settle = resolve))
  const watch = { ended: false, left: false, error: undefined as unknown, over }
  const end = () => {
    watch.ended = true
    settle()
  }

  function subscribe(observer: StreamObserver): StreamSubscription {
    let emitted = false
    let subscription: StreamSubscription | undefined
    const endEmpty = () => {
      end()
      emitNothing(observer)
    }
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
        watch.error = thrownError(error)
        const answering = failed(watch.error)
        const pass = () => {
          end()
          observer.error(error)
        }
        if (answering === undefined) pass()
        else void answering.then(isAnswered => (isAnswered ? endEmpty() : pass()), pass)
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
        // A promise keeps running without a subscriber, so its end is awaited: a retry must not run beside it.
        watch.left = true
      },
    }
  }
  return { watch, stream: interop(subscribe) }
}

/** One `undefined`, as from a handler that returns nothing. Empty would not do: Nest takes the last value. */
export function nothing(): HandlerStream {
  return interop(observer => {
    emitNothing(observer)
    return { unsubscribe() {} }
  })
}

function emitNothing(observer: StreamObserver): void {
  observer.next(undefined)
  observer.complete()
}

function interop(subscribe: (observer: StreamObserver) => StreamSubscription): HandlerStream {
  const stream: HandlerStream = { subscribe }
  const itself = () => stream
  // rxjs takes the symbol where a polyfill has added it, and the name elsewhere.
  const symbol: unknown = Reflect.get(Symbol, 'observable')
  return Object.assign(stream, { '@@observable': itself }, typeof symbol === 'symbol' ? { [symbol]: itself } : {})
}
