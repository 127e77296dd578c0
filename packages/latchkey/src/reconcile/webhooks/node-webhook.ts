/** A webhook handler for servers with Node's request and response: Express, Koa, Fastify, Nest, node:http, node:http2. */
import { fetchRequestOf, isHttp2, type NodeWebhookRequest } from './fetch-request.ts'
import { hostOf, type WebhookHandler, type WebhookHost } from './handler.ts'

/** The members of Node's response that are used. HTTP/1 and HTTP/2 responses fit. */
export interface NodeWebhookResponse {
  readonly headersSent: boolean
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(chunk: string): unknown
  destroy(error?: Error): unknown
}

export type NodeWebhook = (req: NodeWebhookRequest, res: NodeWebhookResponse) => void

/** Mount it before body parsers: a signature covers the bytes, not what a parser made of them. */
export function nodeWebhook(handler: WebhookHandler): NodeWebhook {
  const host = hostOf(handler)
  return (req, res) => {
    answer(handler, host, req)
      .then(({ response, text }) => send(req, res, { response, text }))
      // The client is gone, or something else has responded already.
      .catch(() => res.destroy())
  }
}

interface Answer {
  readonly response: Response
  readonly text: string
}

/** Never rejects: without a response the sender would wait in vain. */
async function answer(handler: WebhookHandler, host: WebhookHost, req: NodeWebhookRequest): Promise<Answer> {
  try {
    return await whole(await respond(handler, host, req))
  } catch (error) {
    return whole(host.fail(error))
  }
}

async function respond(handler: WebhookHandler, host: WebhookHost, req: NodeWebhookRequest): Promise<Response> {
  const made = fetchRequestOf(req)
  switch (made.kind) {
    case 'request':
      return handler(made.request)
    case 'read-before': {
      const cure =
        'The body was read before the webhook handler: mount the handler before body parsers, or retain the raw bytes.'
      return new Response(cure, { status: 500 })
    }
    case 'method':
    case 'malformed':
      return host.refuse(made.kind)
  }
}

async function whole(response: Response): Promise<Answer> {
  return { response, text: await response.text() }
}

function send(req: NodeWebhookRequest, res: NodeWebhookResponse, { response, text }: Answer): void {
  if (res.headersSent) return
  const { status, headers } = response
  for (const [name, value] of headers) res.setHeader(name, value)
  const unreadRest = status === 413
  if (unreadRest && !isHttp2(req)) res.setHeader('connection', 'close')
  res.statusCode = status
  res.end(text)
  if (unreadRest && isHttp2(req)) closeStream(req)
}

/** The rest of a body that is too large is not read. With HTTP/2 only the stream is closed (RFC 9113, section 8.1). */
function closeStream(req: NodeWebhookRequest): void {
  req.stream?.close()
  // Drops what has arrived: Node does not close the stream while data is waiting to be read.
  req.resume()
}
