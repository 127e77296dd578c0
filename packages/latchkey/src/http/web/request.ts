/** A fetch `Request` as the exchange wants to see it. */
import type { BodyRead, RequestView } from '../exchange/request.ts'

/** `read` gives the whole body, up to a limit; it runs once. Fetch joins the lines of a field, so `header` has one line at most. */
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
      // Headers gives all lines as one. Where it may have joined two, they count as two: half a quoted string in each would
      // otherwise become one key.
      return value === null ? [] : value.split(', ')
    },
    body: bytesMax => read(request, bytesMax),
  }
}

/** Cut out of the text, because `URL` would rewrite what was sent. */
function targetOf(url: string): { path: string; query: string } {
  const authority = url.indexOf('//')
  const start = authority < 0 ? 0 : url.indexOf('/', authority + 2)
  const fragment = url.indexOf('#', start)
  const target = start < 0 ? '/' : url.slice(start, fragment < 0 ? undefined : fragment)
  const mark = target.indexOf('?')
  return mark < 0 ? { path: target, query: '' } : { path: target.slice(0, mark), query: target.slice(mark + 1) }
}

/**
 * Gives the request a signal that never fires: the client's disconnect must not stop the handler half-way. An own property over
 * the prototype's getter, so that the request stays the object it was.
 */
export function hideDisconnect<R extends object>(request: R): R {
  return Object.defineProperty(request, 'signal', neverFires)
}

/** Made when somebody looks: most handlers never do. */
const neverFires: PropertyDescriptor & ThisType<object> = {
  get() {
    const { signal } = new AbortController()
    Object.defineProperty(this, 'signal', { value: signal, configurable: true, enumerable: true })
    return signal
  },
  configurable: true,
  enumerable: true,
}
