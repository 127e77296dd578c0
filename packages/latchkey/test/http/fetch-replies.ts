/** Conformance replies as fetch responses, for the adapters of frameworks that answer with a `Response`. */
import type { HandlerReply, RouteSpec } from '@latchkey/conformance'

/** Undefined for the kinds that the framework throws in its own way. */
export function responseOf(reply: HandlerReply): Response | undefined {
  switch (reply.kind) {
    case 'answer':
      return new Response(reply.asText === true ? textOf(reply.body) : bodyOf(reply.status, reply.body), initOf(reply))
    case 'stream':
      return new Response(streamOf(reply), initOf(reply))
    case 'source':
      return new Response(pulledFrom(reply.source), initOf(reply))
    case 'redirect':
      return new Response(null, { status: reply.status, headers: { Location: reply.location } })
    default:
      return undefined
  }
}

function bodyOf(status: number, body: Uint8Array): Uint8Array<ArrayBuffer> | null {
  return [204, 205, 304].includes(status) ? null : new Uint8Array(body)
}

function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body)
}

/** No headers at all where there are none: servers treat that differently. */
function initOf({ status, headers: list }: Extract<HandlerReply, { headers: unknown }>): ResponseInit {
  if (list.length === 0) return { status }
  const headers = new Headers()
  for (const [name, value] of list) headers.append(name, value)
  return { status, headers }
}

function streamOf({ chunks, breaks }: Extract<HandlerReply, { kind: 'stream' }>): ReadableStream<Uint8Array> {
  let sent = 0
  return new ReadableStream({
    async pull(controller) {
      await new Promise(resolve => setImmediate(resolve))
      const chunk = chunks[sent++]
      if (chunk !== undefined) controller.enqueue(chunk)
      else if (breaks) controller.error(new Error('upstream went away'))
      else controller.close()
    },
  })
}

function pulledFrom(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
    cancel: () => void iterator.return?.(),
  })
}

/** The route of a request, for a server without a router of its own. */
export function matches({ method, path }: Pick<RouteSpec, 'method' | 'path'>, request: Request): boolean {
  const pattern = new RegExp(`^${path.replaceAll(/:[a-z]+/g, '[^/]+')}$`)
  return request.method === method && pattern.test(new URL(request.url).pathname)
}

export async function jsonOf(request: Pick<Request, 'text'>): Promise<unknown> {
  const text = await request.text()
  return text === '' ? undefined : JSON.parse(text)
}
