/** Renders a stored outcome as the response to a retry. */
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib'
import type { OperationEngine } from '../../../engine/operation.ts'
import type { Header } from '../../../ports/outcome.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { acceptsEncoding, idempotentReplayed } from '../../../wire/headers.ts'
import type { RenderedAnswer } from '../../../wire/rendered-answer.ts'

export interface Replay {
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** Sixteen times the default limit of a stored body: a body that decodes to more is sent as it is stored. */
const decodedBytesMax = 16 * 1_048_576

/** `onReplay`: what it throws, or rejects with, is reported and changes nothing. */
export function observeReplay<C>({ name, shared }: OperationEngine<C, never>, context: C, record: KeyRecord): void {
  const { onReplay } = shared.http
  if (onReplay === undefined) return
  const failed = (error: unknown) => shared.telemetry.report('onReplay failed', { operation: name, error })
  try {
    const result = onReplay(context, record)
    if (result !== undefined) Promise.resolve(result).catch(failed)
  } catch (error) {
    failed(error)
  }
}

export async function renderReplay(replay: Replay, acceptEncoding: string | undefined): Promise<RenderedAnswer> {
  const coding = valueOf(replay.headers, 'content-encoding')
  const accepted = coding === undefined || acceptsEncoding(acceptEncoding, coding)
  const { headers, body } = accepted ? replay : await decoded(replay, coding)
  const all: [string, string][] = []
  for (const [name, value] of headers) all.push([name, value])
  all.push([idempotentReplayed, 'true'])
  // A shared cache could serve one caller's response to another.
  if (valueOf(headers, 'cache-control') === undefined) all.push(['Cache-Control', 'no-store'])
  return { status: replay.status, headers: all, body }
}

/** The retry may accept less than the first request did: RFC 9110, section 12.5.3. */
async function decoded(replay: Replay, coding: string): Promise<Omit<Replay, 'status'>> {
  const body = await decode(replay.body, coding)
  return body === undefined ? replay : { headers: replay.headers.flatMap(afterDecoding), body }
}

function afterDecoding([name, value]: Header): Header[] {
  const lower = name.toLowerCase()
  if (lower === 'content-encoding') return []
  // A strong validator identifies exact bytes (RFC 9110, section 8.8.1), and decoding has changed them.
  return lower === 'etag' && !value.startsWith('W/') ? [[name, `W/${value}`]] : [[name, value]]
}

/** Undefined where a coding is unknown or the bytes do not match it: then the body is sent as the handler wrote it. */
async function decode(body: Uint8Array, codings: string): Promise<Uint8Array | undefined> {
  let bytes = body
  // Codings are listed in the order applied, so they are undone from the end.
  for (const coding of codings.split(',').reverse()) {
    const decoder = decoderOf(coding.trim().toLowerCase())
    if (decoder === undefined) return undefined
    try {
      bytes = await decoder(bytes)
    } catch {
      return undefined
    }
  }
  return bytes
}

type Decoder = (bytes: Uint8Array) => Promise<Uint8Array>

const limits = { maxOutputLength: decodedBytesMax }
const gunzipBytes = promisify<Uint8Array, typeof limits, Uint8Array>(gunzip)
const inflateBytes = promisify<Uint8Array, typeof limits, Uint8Array>(inflate)
const inflateRawBytes = promisify<Uint8Array, typeof limits, Uint8Array>(inflateRaw)
const brotliBytes = promisify<Uint8Array, typeof limits, Uint8Array>(brotliDecompress)

function decoderOf(coding: string): Decoder | undefined {
  switch (coding) {
    case 'identity':
      return bytes => Promise.resolve(bytes)
    case 'gzip':
    case 'x-gzip':
      return bytes => gunzipBytes(bytes, limits)
    case 'deflate':
      // Some servers send the raw format under this name, and browsers accept both.
      return bytes => inflateBytes(bytes, limits).catch(() => inflateRawBytes(bytes, limits))
    case 'br':
      return bytes => brotliBytes(bytes, limits)
    default:
      return undefined
  }
}

function valueOf(headers: readonly Header[], lower: string): string | undefined {
  let values: string | undefined
  for (const [name, value] of headers) {
    if (name.length !== lower.length || name.toLowerCase() !== lower) continue
    values = values === undefined ? value : `${values}, ${value}`
  }
  return values
}
