/** Reading and writing the head of a reply. Fastify keeps its own headers beside those of `raw` until the first byte. */
import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { answerOver } from '../adapter/answer-over.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import type { FastifyReplyLike } from './driver.ts'
import type { RequestState } from './request-state.ts'

export function replyHeaders(reply: Pick<FastifyReplyLike, 'getHeaders'>): Header[] {
  return Object.entries(reply.getHeaders()).flatMap(([name, value]) => {
    if (value === undefined) return []
    return [value].flat().map((one): Header => [name, String(one)])
  })
}

/** An answer of ours with the headers of the reply, for the raw response, where they are not yet. */
export function answerOverReply(before: readonly Header[], answer: RenderedAnswer): RenderedAnswer {
  return answerOver(
    before.filter(([name]) => !name.toLowerCase().startsWith('content-')),
    answer,
  )
}

/** These describe the bytes of one answer, so another answer must not inherit them. */
const ofTheBody = ['content-type', 'content-encoding', 'content-length']

/** Writes an answer of ours over what the application's hooks have set on the reply. */
export function setAnswer(reply: FastifyReplyLike, { status, headers }: RenderedAnswer): void {
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

/** Sends an answer of ours. What the application's `onSend` hooks make of its bytes is undone: the stored ones are sent. */
export function sendReply(state: RequestState, reply: FastifyReplyLike, answer: RenderedAnswer): void {
  state.stage = { kind: 'answered', answer }
  setAnswer(reply, answer)
  reply.send(answer.body.byteLength === 0 ? undefined : Buffer.from(answer.body))
}
