/** Nest's two HTTP platforms, brought to one shape. */
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import type { NodeBodyRequest } from '../node/body.ts'
import { type CaptureEnd, sendAnswer } from '../node/capture.ts'
import type { HeaderValue, NodeResponse } from '../node/driver.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import { addedHeaders } from '../exchange/exchange.ts'
import type { NestContext, NestFastifyReply, NestRequest } from './driver.ts'
import { declaredHeaderNames } from './metadata.ts'
import { muteReply, muteResponse } from './after-answer.ts'

export interface Platform {
  /** What controllers, guards and the operation's scope get. */
  readonly request: NestRequest
  readonly req: NodeBodyRequest
  readonly res: NodeResponse
  /** Call it when the handler is about to run: gives the headers of its `@Header()` back. */
  restoreDeclared(): void
  /** The head is out, or nobody but the handler may send one: Nest's exception filters no longer answer. */
  headSent(): boolean
  /** An answer of ours, with what was set before Latchkey began. For `Capture.replace`. */
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
      muteResponse(res)
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
  const kept = before.filter(([name]) => !name.toLowerCase().startsWith('content-'))
  const over = (answer: RenderedAnswer): RenderedAnswer => ({
    ...answer,
    headers: mergeHeaders(kept, answer.headers).map(([name, value]) => [name, value]),
  })
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
      muteReply(reply)
      muteResponse(res)
    },
  }
}

interface Head {
  read(name: string): HeaderValue | undefined
  set(name: string, value: HeaderValue): void
  remove(name: string): void
}

/**
 * Headers of `@Header()` are the handler's, although Nest sets them before the interceptors run. Taken away until the capture has
 * begun, they are stored with the answer, and a refusal does not carry them.
 */
function takeDeclared(names: readonly string[], head: Head): () => void {
  const values = names.map(name => [name, head.read(name)] as const)
  for (const name of names) head.remove(name)
  return () => {
    for (const [name, value] of values) if (value !== undefined) head.set(name, value)
  }
}

function replyHeaders(reply: NestFastifyReply): Header[] {
  return Object.entries(reply.getHeaders()).flatMap(([name, value]) => {
    if (value === undefined) return []
    return [value].flat().map((one): Header => [name, String(one)])
  })
}
