/** Nest's two HTTP platforms behind one interface. */
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { addedHeaders } from '../exchange/exchange.ts'
import type { RequestView } from '../exchange/request.ts'
import { answerOverReply, replyHeaders } from '../fastify/reply-head.ts'
import { bodyOf, type NodeBodyRequest, nodeView } from '../node/request.ts'
import { type CaptureEnd, sendAnswer } from '../node/capture.ts'
import type { HeaderValue, NodeResponse } from '../node/driver.ts'
import type { NestContext, NestFastifyReply, NestRequest } from './driver.ts'
import { declaredHeaderNames } from './metadata.ts'
import { ignoreFurtherAnswers, ignoreFurtherReplies } from './after-answer.ts'

export interface Platform {
  /** What controllers, guards and the operation's scope get. */
  readonly request: NestRequest
  readonly req: NodeBodyRequest
  readonly res: NodeResponse
  /** Call it when the handler is about to run: sets the headers of its `@Header()` again. */
  restoreDeclared(): void
  /** The head is out, or only the handler may send one: Nest's exception filters no longer answer. */
  headSent(): boolean
  /** An answer of ours, with what was set before Latchkey began. For `holdAnswer`. */
  over(answer: RenderedAnswer): RenderedAnswer
  /** Without what was set before Latchkey began. */
  ownPart(end: CaptureEnd): CaptureEnd
  /** Sends an answer of ours in the handler's place. What Nest sends after it is dropped. */
  answer(answer: RenderedAnswer): void
}

/** Made when Latchkey begins, after the guards. */
export function platformOf(context: NestContext): Platform {
  const http = context.switchToHttp()
  const request = http.getRequest()
  const response = http.getResponse()
  const req = 'raw' in request ? request.raw : request
  const declared = declaredHeaderNames(context.getHandler())
  return 'raw' in response
    ? onFastify({ request, req }, response, declared)
    : onExpress({ request, req }, response, declared)
}

const cure =
  'The raw request body is no longer available and the parsed body is ambiguous. Let Nest keep the raw bytes: ' +
  'NestFactory.create(AppModule, { rawBody: true }).'

export function nestView({ req, request }: Platform): RequestView<unknown> {
  const body = async (bytesMax: number) => bodyOf(req, { raw: request.rawBody, parsed: request.body, cure, bytesMax })
  return nodeView(req, request, body)
}

type Inbound = Pick<Platform, 'request' | 'req'>

function onExpress(inbound: Inbound, res: NodeResponse, declared: readonly string[]): Platform {
  const restoreDeclared = takeDeclared(declared, {
    read: name => res.getHeader(name),
    set: (name, value) => void res.setHeader(name, value),
    remove: name => res.removeHeader(name),
  })
  return {
    ...inbound,
    res,
    restoreDeclared,
    headSent: () => res.headersSent,
    // All headers are on the response itself, where capture and sendAnswer find them.
    over: answer => answer,
    ownPart: end => end,
    answer(answer) {
      sendAnswer(res, answer)
      ignoreFurtherAnswers(res)
    },
  }
}

function onFastify(inbound: Inbound, reply: NestFastifyReply, declared: readonly string[]): Platform {
  const res = reply.raw
  const restoreDeclared = takeDeclared(declared, {
    read: name => reply.getHeader(name),
    set: (name, value) => void reply.header(name, value),
    remove: name => void reply.removeHeader(name),
  })
  // Fastify keeps its own headers beside those of the raw response until the first byte.
  const before = replyHeaders(reply)
  const over = (answer: RenderedAnswer): RenderedAnswer => answerOverReply(before, answer)
  return {
    ...inbound,
    res,
    restoreDeclared,
    headSent: () => reply.sent || res.headersSent,
    over,
    ownPart(end) {
      if (end.kind !== 'whole') return end
      return { kind: 'whole', response: { ...end.response, headers: addedHeaders(before, end.response.headers) } }
    },
    answer(answer) {
      // Past the application's onSend hooks: they ran for the stored answer, and would run over it a second time.
      reply.hijack()
      sendAnswer(res, over(answer))
      ignoreFurtherReplies(reply)
      ignoreFurtherAnswers(res)
    },
  }
}

interface Head {
  read(name: string): HeaderValue | undefined
  set(name: string, value: HeaderValue): void
  remove(name: string): void
}

/**
 * Headers of `@Header()` are the handler's, although Nest sets them before the interceptors run. Removed until the capture has
 * begun, they are stored with the answer, and a refusal does not carry them.
 */
function takeDeclared(names: readonly string[], head: Head): () => void {
  const values = names.map(name => [name, head.read(name)] as const)
  for (const name of names) head.remove(name)
  return () => {
    for (const [name, value] of values) if (value !== undefined) head.set(name, value)
  }
}
