/** A webhook handler for servers that speak Node's request and response: Express, Koa, Fastify, Nest, node:http. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WebhookHandler } from './webhook.ts'

/** Raw bytes that a framework has kept: Nest's `rawBody`, or a body that a raw parser left as bytes. */
export interface NodeWebhookRequest extends IncomingMessage {
  readonly rawBody?: unknown
  readonly body?: unknown
}

export type NodeWebhook = (req: NodeWebhookRequest, res: ServerResponse) => void

/** Mount it before body parsers: a signature covers the bytes, not what a parser made of them. */
export function nodeWebhook(handler: WebhookHandler): NodeWebhook {
  return (req, res) => {
    answer(handler, req)
      .then(async response => send(res, response, await response.text()))
      .catch(() => res.destroy())
  }
}

async function answer(handler: WebhookHandler, req: NodeWebhookRequest): Promise<Response> {
  const kept = [req.rawBody, req.body].find(body => body instanceof Uint8Array)
  if (kept === undefined && req.readableDidRead) {
    const cure = 'The body was read before the webhook: mount it before body parsers, or keep the raw bytes.'
    return new Response(cure, { status: 500 })
  }
  const hasBody = req.method !== 'GET' && req.method !== 'HEAD'
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one)
  }
  // The host plays no part in a signature, and may be no URL's host.
  const request = new Request(new URL(req.url ?? '/', 'http://webhook.invalid'), {
    method: req.method ?? 'POST',
    headers,
    ...(hasBody ? { body: kept ?? streamOf(req), duplex: 'half' } : {}),
  })
  return handler(request)
}

/** Cancelled, it leaves the socket alone: the answer still has to go through it. */
function streamOf(req: IncomingMessage): ReadableStream<Uint8Array> {
  let open = true
  const end = (finish: () => void) => () => {
    if (open) finish()
    open = false
  }
  return new ReadableStream({
    start(controller) {
      const broken = end(() => controller.error(new Error('the webhook ended before its body did')))
      req.on('data', (chunk: Uint8Array) => {
        if (open) controller.enqueue(chunk)
        req.pause()
      })
      req.on(
        'end',
        end(() => controller.close()),
      )
      req.on('error', broken)
      req.on('close', broken)
    },
    pull: () => void req.resume(),
    cancel: end(() => void req.pause()),
  })
}

function send(res: ServerResponse, { status, headers }: Response, body: string): void {
  for (const [name, value] of headers) res.setHeader(name, value)
  // The rest of a body that is too large is not read.
  if (status === 413) res.setHeader('connection', 'close')
  res.writeHead(status).end(body)
}
