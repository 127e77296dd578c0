/** Converts Node's request into a fetch `Request`, as far as fetch can represent it. */

/** The members of Node's request that are used. HTTP/1 and HTTP/2 requests fit. */
export interface NodeWebhookRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly httpVersionMajor?: number
  readonly readableDidRead?: boolean
  /** Raw bytes that a framework retained: Nest's `rawBody`, or a body that a raw parser left as bytes. */
  readonly rawBody?: unknown
  readonly body?: unknown
  /** HTTP/2 only. */
  readonly stream?: { close(): void }
  /** A listener takes whatever its event carries. Generic: every version of Node's own types fits that. */
  on<Args extends unknown[]>(event: string, listener: (...args: Args) => void): unknown
  pause(): unknown
  resume(): unknown
}

export type FetchRequest =
  | { readonly kind: 'request'; readonly request: Request }
  /** The body was consumed already. */
  | { readonly kind: 'read-before' }
  /** A method that fetch forbids. */
  | { readonly kind: 'method' }
  /** A target or a field that fetch does not accept. */
  | { readonly kind: 'malformed' }

/** https://fetch.spec.whatwg.org/#forbidden-method */
const forbiddenMethods = new Set(['CONNECT', 'TRACE', 'TRACK'])

export function fetchRequestOf(req: NodeWebhookRequest): FetchRequest {
  const { method = 'POST' } = req
  if (forbiddenMethods.has(method.toUpperCase())) return { kind: 'method' }
  const rawBody = [req.rawBody, req.body].find(body => body instanceof Uint8Array)
  if (rawBody === undefined && req.readableDidRead === true) return { kind: 'read-before' }
  const url = urlOf(req.url ?? '/')
  const headers = headersOf(req.headers)
  if (url === undefined || headers === undefined) return { kind: 'malformed' }
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = hasBody ? { body: rawBody ?? streamOf(req), duplex: 'half' as const } : {}
  return { kind: 'request', request: new Request(url, { method, headers, ...body }) }
}

export function isHttp2({ httpVersionMajor = 1 }: NodeWebhookRequest): boolean {
  return httpVersionMajor >= 2
}

/** Signatures do not cover the host, and the Host field may not be valid in a URL. */
const origin = 'http://webhook.invalid'

/** Appended to the origin as text: resolved against it, `//x` would be a host. */
function urlOf(target: string): string | undefined {
  if (target.startsWith('/')) return origin + target
  // `*` of OPTIONS, and the absolute form (RFC 9112, section 3.2).
  const url = target === '*' ? `${origin}/*` : target
  return URL.canParse(url) && /^https?:/i.test(url) ? url : undefined
}

/** Undefined: fetch refuses a name or a value. */
function headersOf(fields: NodeWebhookRequest['headers']): Headers | undefined {
  const headers = new Headers()
  for (const [name, value] of Object.entries(fields)) {
    // HTTP/2 sends the method and the target in such fields (RFC 9113, section 8.3).
    if (name.startsWith(':')) continue
    for (const one of [value ?? []].flat()) if (!append(headers, name, one)) return undefined
  }
  return headers
}

function append(headers: Headers, name: string, value: string): boolean {
  try {
    headers.append(name, value)
    return true
  } catch {
    return false
  }
}

/** Cancelling it does not close the socket: the response is still to be sent. */
function streamOf(req: NodeWebhookRequest): ReadableStream<Uint8Array> {
  let open = true
  const end = (finish: () => void) => () => {
    if (open) finish()
    open = false
  }
  return new ReadableStream({
    start(controller) {
      const broken = end(() => controller.error(new Error('the request ended before its body was complete')))
      req.on('data', (chunk: Uint8Array) => {
        if (!open) return
        controller.enqueue(chunk)
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
