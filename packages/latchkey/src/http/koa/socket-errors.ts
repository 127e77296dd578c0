/** Prevents a failed connection from answering in the handler's place. */
import type { KoaContext } from './driver.ts'

/**
 * Koa passes the socket's error to `ctx.onerror`, which renders a 500. Until the handler has ended, that would be taken for its answer,
 * and the key released or settled while the handler still runs. Call it before the response is captured: it needs the real socket. The
 * returned function undoes it.
 */
export function hideSocketErrors(context: KoaContext): () => void {
  const socket: unknown = Reflect.get(context.req, 'socket')
  const isOfSocket = (error: unknown) =>
    typeof socket === 'object' && socket !== null && Reflect.get(socket, 'errored') === error
  const { onerror } = context
  context.onerror = error => {
    if (error instanceof Error && isOfSocket(error)) return void context.app.emit('error', error, context)
    return onerror.call(context, error)
  }
  return () => void Reflect.deleteProperty(context, 'onerror')
}
