/** Reading and writing the head of a reply. Fastify keeps its own headers beside those of `raw` until the first byte. */
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import type { ReplyShape } from './driver.ts'

export function replyHeaders(reply: ReplyShape): Header[] {
  return Object.entries(reply.getHeaders()).flatMap(([name, value]) => {
    if (value === undefined) return []
    return [value].flat().map((one): Header => [name, String(one)])
  })
}

/** What says how the bytes are to be read. It comes with the bytes of an answer, or not at all. */
const ofTheBody = ['content-type', 'content-encoding', 'content-length']

/** Lays an answer of ours over what the application's hooks have set on the reply. */
export function layAnswer(reply: ReplyShape, { status, headers }: RenderedAnswer): void {
  reply.code(status)
  for (const name of ofTheBody) reply.removeHeader(name)
  const values = new Map<string, string[]>()
  for (const [name, value] of mergeHeaders(replyHeaders(reply), headers)) {
    const lower = name.toLowerCase()
    values.set(lower, [...(values.get(lower) ?? []), value])
  }
  for (const [name, all] of values) {
    // Fastify appends to Set-Cookie instead of replacing it; the application's own cookies are already there.
    if (name === 'set-cookie') continue
    const [only] = all
    reply.header(name, all.length === 1 && only !== undefined ? only : all)
  }
}
