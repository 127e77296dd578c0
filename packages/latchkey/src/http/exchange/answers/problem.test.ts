import { describe, expect, it } from 'vitest'
import type { HttpOptions } from '../../../engine/operation.ts'
import { silentTelemetry } from '../../../ports/telemetry.ts'
import type { Problem } from '../../../wire/problem.ts'
import { type ProblemAnswer, renderProblem } from '../../../wire/render-problem.ts'
import { answerProblem } from './problem.ts'

const inProgress: Problem = { code: 'in-progress', retryAfterMs: 2_500 }

function answered(renderAs: HttpOptions['renderProblem'], problem = inProgress) {
  const reports: unknown[] = []
  const telemetry = { ...silentTelemetry, report: (_: string, { error }: { error?: unknown }) => reports.push(error) }
  const http = renderAs === undefined ? {} : { renderProblem: renderAs }
  const answer = answerProblem(problem, { http, telemetry }, undefined)
  const header = (name: string) => answer.headers.find(([one]) => one.toLowerCase() === name)?.[1]
  return { answer, header, reports, text: Buffer.from(answer.body).toString() }
}

describe("a problem in the application's own shape", () => {
  it('hands the problem over with its code, texts, status and times', () => {
    const seen: unknown[] = []
    answered(problem => void seen.push(problem))
    answered(problem => void seen.push(problem), { code: 'key-reused', differing: ['body'] })
    expect(seen).toEqual([
      {
        code: 'in-progress',
        status: 409,
        type: 'urn:latchkey:problem:in-progress',
        title: 'Request in progress',
        detail: expect.stringContaining('still being executed'),
        retry: 'later',
        retryAfterMs: 2_500,
        extensions: {},
      },
      expect.objectContaining({ retry: 'no', retryAfterMs: undefined, extensions: { differing_parts: ['body'] } }),
    ])
  })

  it('sends an object as JSON under the status of the problem, and keeps Retry-After and Cache-Control', () => {
    const { answer, header, text } = answered(({ code }) => ({ body: { error: { code } } }))
    expect([answer.status, text]).toEqual([409, '{"error":{"code":"in-progress"}}'])
    expect(['content-type', 'retry-after', 'cache-control', 'latchkey-retry', 'content-language'].map(header)).toEqual([
      'application/json',
      '3',
      'no-store',
      'later',
      undefined,
    ])
  })

  it('sends text and bytes as they are, with the headers that it names over ours', () => {
    const named = answered(() => ({ headers: { 'content-type': 'text/html', 'retry-after': '9' }, body: '<p>\u00e9' }))
    expect([named.text, named.header('content-type'), named.header('retry-after')]).toEqual([
      '<p>\u00e9',
      'text/html',
      '9',
    ])
    expect(named.answer.headers.filter(([name]) => name.toLowerCase() === 'retry-after')).toHaveLength(1)
    expect(answered(() => ({ body: 'busy' })).header('content-type')).toBe('text/plain; charset=utf-8')
    const bytes = answered(() => ({ body: Uint8Array.of(0, 255) }))
    expect([...bytes.answer.body, bytes.header('content-type')]).toEqual([0, 255, 'application/octet-stream'])
  })

  // As JavaScript returns it.
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['returns a promise', async () => ({ body: {} })],
    ['returns a promise that rejects', () => Promise.reject(new Error('late'))],
    ['returns null', () => null],
    ['returns no body', () => ({ status: 409 })],
    ['returns a body that is not JSON', () => ({ body: cyclic })],
    ['returns a number as the body', () => ({ body: 5 })],
    ['returns a status of success', () => ({ status: 200, body: {} })],
    ['returns a status that is none', () => ({ status: 1000, body: {} })],
    ['splits a header', () => ({ headers: { 'X-Own': 'a\r\nSet-Cookie: b' }, body: {} })],
    ['names a header that is none', () => ({ headers: { 'X Own': 'a' }, body: {} })],
    ['sets the length', () => ({ headers: { 'Content-Length': '3' }, body: {} })],
  ])("sends Latchkey's own and reports it where it %s", (_, renderAs) => {
    const { answer, reports } = answered(() => renderAs() as ProblemAnswer)
    expect(answer).toEqual(renderProblem(inProgress))
    expect(reports).toEqual([expect.any(Error)])
  })

  it("sends Latchkey's own, and reports nothing, where it returns undefined", () => {
    const { answer, reports } = answered(() => undefined)
    expect([answer, reports]).toEqual([renderProblem(inProgress), []])
  })
})
