/** One request on a phased route. The handler claims, because everything that Fastify runs before it may still refuse the request. */
import type { DefinedOperation } from '../../engine/operation.ts'
import { nodeView } from '../node/request.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import type { ReplyShape, RequestShape } from './driver.ts'
import { sendReply, type Visit } from './request-state.ts'

interface Inbound<Request, Reply> {
  readonly visit: Visit
  readonly request: Request
  readonly reply: Reply
}

/** Fulfils with the reply, sent. Rejects with what the definition threw, for Fastify's error handler. */
export async function answerPhased<Request extends RequestShape, Reply extends ReplyShape>(
  operation: DefinedOperation<unknown, Request>,
  route: PhasedRoute<Request, unknown>,
  { visit, request, reply }: Inbound<Request, Reply>,
): Promise<Reply> {
  const view = nodeView(request.raw, request, () => Promise.resolve(visit.body.read(request.raw)))
  const answer = await exchangePhased(operation, view, route)
  // Fastify's handler timeout may have answered meanwhile. The outcome is stored, and the retry gets it.
  if (!reply.raw.headersSent) sendReply(visit, reply, answer)
  return reply
}
