/** Presents a fetch `Request` to the exchange. */
import type { BodyRead, RequestView } from '../exchange/request.ts'

/** `read` is called once and returns the whole body, up to a limit. */
export function fetchView<Context, R extends Request>(
  request: R,
  context: Context,
  read: (request: R, bytesMax: number) => Promise<BodyRead>,
): RequestView<Context> {
  const { path, query } = targetOf(request.url)
  return {
    context,
    method: request.method,
    path,
    query,
    header: name => {
      const value = request.headers.get(name)
      // Headers joins the lines of a field. Where it may have joined two, they count as two: half a quoted string in each would
      // otherwise become one key.
      return value === null ? [] : value.split(', ')
    },
    body: bytesMax => read(request, bytesMax),
  }
}

/** Sliced from the text, because `URL` would rewrite what was sent. */
function targetOf(url: string): { path: string; query: string } {
  const authority = url.indexOf('//')
  const start = authority < 0 ? 0 : url.indexOf('/', authority + 2)
  const fragment = url.indexOf('#', start)
  const target = start < 0 ? '/' : url.slice(start, fragment < 0 ? undefined : fragment)
  const mark = target.indexOf('?')
  return mark < 0 ? { path: target, query: '' } : { path: target.slice(0, mark), query: target.slice(mark + 1) }
}

/**
 * Gives the request a signal that never fires: the client's disconnect must not stop the handler half-way. It is an own property over
 * the prototype's getter, so that the request stays the same object.
 */
export function hideDisconnect<R extends object>(request: R): R {
  return Object.defineProperty(request, 'signal', neverFires)
}

interface HidingRequest {
  [hidden]?: AbortController
}

const hidden: unique symbol = Symbol('latchkey: signal')

/** Created when the handler reads it: most never do. */
const neverFires: PropertyDescriptor & ThisType<HidingRequest> = {
  get() {
    const controller = new AbortController()
    const { signal } = controller
    this[hidden] = controller
    Object.defineProperty(this, 'signal', { value: signal, configurable: true, enumerable: true })
    return signal
  },
  configurable: true,
  enumerable: true,
}

/** The signal of the request itself, which `hideDisconnect` has covered. */
export function ownSignal(request: object): AbortSignal | undefined {
  const signal: unknown = Reflect.get(Object.getPrototypeOf(request) as object, 'signal', request)
  return signal instanceof AbortSignal ? signal : undefined
}

/** Fires the signal after all: the client has left an event stream, which nothing else may ever end. */
export function showDisconnect(request: object & HidingRequest): void {
  const controller = request[hidden]
  if (controller !== undefined) controller.abort()
  else Object.defineProperty(request, 'signal', { value: AbortSignal.abort(), configurable: true, enumerable: true })
}
