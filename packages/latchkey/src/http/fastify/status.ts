/** The status resource on Fastify. */
import { nodeView } from '../node/request.ts'
import type { BodyRead } from '../exchange/request.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import type { ReplyOf, FastifyReplyLike, FastifyRequestLike } from './driver.ts'
import { setAnswer } from './reply-head.ts'

/**
 * The status of phased and deferred work, for its own scope: `app.get('/operations/:id', statusOf(latchkey))`, behind the same
 * authentication as the operations. It does not need the plugin. Mount it where `http.statusPath` says.
 */
export function statusOf<
  Context,
  Request extends FastifyRequestLike & Context = FastifyRequestLike & Context,
  Reply extends FastifyReplyLike = ReplyOf<Request>,
>(
  latchkey: StatusHost<Context>,
  options: StatusOptions<Context> = {},
): (request: Request, reply: Reply) => Promise<Reply> {
  checkStatus(latchkey, options)
  return async (request, reply) => {
    const answer = await exchangeStatus(latchkey, nodeView(request.raw, request, emptyBody), options)
    if (reply.raw.headersSent) return reply
    setAnswer(reply, answer)
    reply.send(Buffer.from(answer.body))
    return reply
  }
}

/** Status requests have no body. */
function emptyBody(): Promise<BodyRead> {
  return Promise.resolve({ kind: 'bytes', bytes: new Uint8Array() })
}
