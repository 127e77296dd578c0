/** Captures a fetch `Response`: read to its end, then built anew for the client. */
import type { Attempt } from '../../engine/answer.ts'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { addedHeaders, attemptOf } from '../exchange/outcome.ts'

export interface FetchCapture {
  readonly attempt: Attempt
  /** What the client gets; absent when there is none (a throw, a stream that broke). */
  readonly response: Response | undefined
}

export interface CaptureOptions {
  /** The response was rendered from this throw. */
  readonly error?: unknown
  /** Headers that outer middleware had set when Latchkey began: sent, and not stored. */
  readonly before?: readonly Header[]
}

/** Statuses that a `Response` may not have a body with. */
const bodiless = new Set([101, 204, 205, 304])

export async function captureFetchResponse(
  response: Response,
  { error, before = [] }: CaptureOptions = {},
): Promise<FetchCapture> {
  const { status } = response
  if (status < 200 || response.type === 'error' || response.headers.has(alreadySent)) {
    return { response, attempt: { kind: 'unreplayable', status, why: 'the handler took the connection over' } }
  }
  try {
    const body = new Uint8Array(await response.arrayBuffer())
    const headers = addedHeaders(before, headerList(response.headers))
    return { response: rebuild(response, body), attempt: attemptOf({ status, headers, body }, error) }
  } catch (broken) {
    // No clean end, so no outcome; what the operation declares about failures decides.
    return { response: undefined, attempt: { kind: 'threw', error: error ?? broken } }
  }
}

/** The mark of Hono's Node server for a response that the handler wrote to the socket itself. */
const alreadySent = 'x-hono-already-sent'

function rebuild(response: Response, body: Uint8Array): Response {
  const { status, statusText, headers } = response
  const sized = new Headers(headers)
  // The bytes are known now; a declared length of another kind would make the client wait or cut them.
  sized.delete('Transfer-Encoding')
  if (!bodiless.has(status)) sized.set('Content-Length', String(body.byteLength))
  return new Response(bodyFor(status, body), { status, statusText, headers: sized })
}

export function fetchAnswer({ status, headers, body }: RenderedAnswer): Response {
  const head = new Headers()
  for (const [name, value] of headers) head.append(name, value)
  if (!bodiless.has(status)) head.set('Content-Length', String(body.byteLength))
  return new Response(bodyFor(status, body), { status, headers: head })
}

/** Fetch's types want bytes over a plain ArrayBuffer; a Buffer from a pool or a store may be a view into a shared one. */
function bodyFor(status: number, body: Uint8Array): Uint8Array<ArrayBuffer> | null {
  return bodiless.has(status) ? null : new Uint8Array(body)
}

/** The handler's own response, or its own throw, to the caller it ran for. */
export function releaseFetch(
  capture: FetchCapture | undefined,
  released: { attempt: Attempt; headers: readonly Header[] },
): Response {
  if (capture?.response === undefined) {
    throw released.attempt.kind === 'threw' ? released.attempt.error : new Error('the handler gave no response')
  }
  for (const [name, value] of released.headers) capture.response.headers.set(name, value)
  return capture.response
}

/** Set-Cookie is the one field that fetch does not join; each of its values stands alone. */
export function headerList(headers: Headers): Header[] {
  return [...headers].map(([name, value]): Header => [name, value])
}
