/** Reading and writing the head of a Node response. */
import { isAscii } from 'node:buffer'
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import type { NodeResponse } from './driver.ts'

/** Every header set so far, with the spelling it was set in and each value of a repeated name on its own. */
export function headersOf(res: NodeResponse): Header[] {
  const headers: Header[] = []
  for (const name of res.getRawHeaderNames?.() ?? Object.keys(res.getHeaders())) {
    const value = res.getHeader(name)
    if (Array.isArray(value)) for (const one of value) headers.push([name, String(one)])
    else if (value !== undefined) headers.push([name, String(value)])
  }
  return headers
}

export function setHeaders(res: NodeResponse, headers: readonly Header[]): void {
  const values = new Map<string, { name: string; values: string[] }>()
  for (const [name, value] of headers) {
    const known = values.get(name.toLowerCase())
    if (known === undefined) values.set(name.toLowerCase(), { name, values: [value] })
    else known.values.push(value)
  }
  for (const { name, values: all } of values.values()) {
    const [only] = all
    res.setHeader(name, all.length === 1 && only !== undefined ? only : all)
  }
}

export function resetHeaders(res: NodeResponse, headers: readonly Header[]): void {
  for (const name of Object.keys(res.getHeaders())) res.removeHeader(name)
  setHeaders(res, headers)
}

/** RFC 9110, section 8.6: no Content-Length on 204; on 304 it would speak of another response. */
const unsized = new Set([204, 304])

/** Sends an answer of ours on top of what outer middleware set. */
export function sendAnswer(res: NodeResponse, { status, headers, body }: RenderedAnswer): void {
  res.statusCode = status
  // HTTP/2 has no reason phrase, and Node warns when one is set.
  if (!isHttp2(res)) res.statusMessage = ''
  const outer = headersOf(res).filter(([name]) => !isFraming(name))
  resetHeaders(res, mergeHeaders(outer, headers))
  if (unsized.has(status)) return void res.end()
  res.setHeader('Content-Length', String(body.byteLength))
  endWith(res, body)
}

/** Node writes a head and a text at once, and a head and bytes one after the other, which costs the system more than all else. */
const textBytesMax = 16_384

export function endWith(res: NodeResponse, body: Uint8Array): void {
  // Plain ASCII is the same in every encoding, also for middleware around `end` that does not look at it.
  if (body.byteLength > textBytesMax || isHttp2(res) || !isAscii(body)) return void res.end(body)
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  // The port has one of Node's overloads, because that is the one all frameworks type alike.
  ;(res as { end(text: string, encoding: 'latin1'): unknown }).end(text, 'latin1')
}

function isFraming(name: string): boolean {
  return ['content-length', 'transfer-encoding', 'content-encoding'].includes(name.toLowerCase())
}

/** Node's HTTP/2 compatibility response, which has a stream instead of a socket of its own. */
export function isHttp2(res: object): boolean {
  return 'stream' in res && !Object.hasOwn(res, 'socket')
}
