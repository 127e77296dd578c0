/** A small HTTP client that hides nothing: one connection per request, raw headers, bytes as received. */
import { type Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'

export interface SentRequest {
  readonly method?: string
  /** Absent: no field at all. A list: one line each. */
  readonly key?: string | readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  /** JSON unless it is bytes or text. */
  readonly body?: unknown
  /** Announces the whole body and sends this many bytes of it, then nothing. */
  readonly bodyBytes?: number
  /** Sends the body without its length. */
  readonly chunked?: boolean
  /** Default: a connection of its own. */
  readonly agent?: Agent
  readonly onFirstByte?: () => void
  /** Called with each part of the body. */
  readonly onData?: (part: Buffer) => void
  /** The body is not read. */
  readonly reads?: false
  readonly onInformation?: (status: number) => void
}

export interface Received {
  readonly status: number
  readonly body: Buffer
  readonly rawHeaders: readonly string[]
  readonly trailers: Readonly<Record<string, string | undefined>>
  header(name: string): string | undefined
  headers(name: string): string[]
  json(): Record<string, unknown>
}

/** The longest that a case waits for one response: only a hang takes longer. */
const answerMsMax = 30_000

/** A request in progress; `drop` closes its connection as an impatient client does. */
export interface Sending {
  readonly received: Promise<Received>
  drop(): void
}

export function send(url: string, sent: SentRequest = {}): Sending {
  const { bytes, contentType } = encode(sent.body)
  const headers: Record<string, string | string[]> = { 'x-tenant': 'acme', ...contentType, ...sent.headers }
  if (sent.key !== undefined) headers['idempotency-key'] = typeof sent.key === 'string' ? sent.key : [...sent.key]
  if (bytes !== undefined && sent.chunked !== true) headers['content-length'] = String(bytes.byteLength)
  const outgoing = httpRequest(url, { method: sent.method ?? 'POST', headers, agent: sent.agent ?? false })
  const received = receive(outgoing, sent)
  if (sent.chunked === true && bytes !== undefined) {
    // In two pieces: Node knows the length of a body that is written at once.
    outgoing.write(bytes.subarray(0, 1))
    outgoing.end(bytes.subarray(1))
  } else if (sent.bodyBytes === undefined) outgoing.end(bytes)
  else outgoing.write(bytes?.subarray(0, sent.bodyBytes))
  return { received, drop: () => outgoing.destroy() }
}

function receive(
  outgoing: ClientRequest,
  { onFirstByte, onInformation, onData, reads }: SentRequest,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    outgoing.setTimeout(answerMsMax, () => outgoing.destroy(new Error(`no answer within ${answerMsMax} ms`)))
    outgoing.on('error', reject)
    outgoing.on('information', info => onInformation?.(info.statusCode))
    outgoing.on('response', incoming => {
      onFirstByte?.()
      const chunks: Buffer[] = []
      incoming.on('error', reject)
      if (reads === false) return
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        onData?.(chunk)
      })
      incoming.on('end', () => resolve(receivedOf(incoming, Buffer.concat(chunks))))
    })
  })
}

function receivedOf(incoming: IncomingMessage, body: Buffer): Received {
  const { rawHeaders, trailers } = incoming
  const headers = (name: string) =>
    rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name.toLowerCase())
  return {
    status: incoming.statusCode ?? 0,
    body,
    rawHeaders,
    trailers,
    headers,
    header: name => headers(name)[0],
    // A case that expects JSON fails on anything else, as it should.
    json: () => JSON.parse(body.toString()) as Record<string, unknown>,
  }
}

function encode(body: unknown): { bytes: Buffer | undefined; contentType: Record<string, string> } {
  if (body === undefined) return { bytes: undefined, contentType: {} }
  if (body instanceof Uint8Array)
    return { bytes: Buffer.from(body), contentType: { 'content-type': 'application/octet-stream' } }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { bytes: Buffer.from(text), contentType: { 'content-type': 'application/json' } }
}
