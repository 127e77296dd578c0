import { describe, expect, it } from 'vitest'
import type { Problem } from './problem.ts'
import { isProblemBase, renderProblem } from './render-problem.ts'
import { renderAccepted, type RenderedAnswer, retryAfterSeconds } from './rendered-answer.ts'

const examples: [Problem, number, 'later' | 'no'][] = [
  [{ code: 'missing-key' }, 400, 'no'],
  [{ code: 'invalid-key', reason: 'too-long', detail: 'The key has 300 characters.' }, 400, 'no'],
  [{ code: 'scope-unresolved' }, 500, 'later'],
  [{ code: 'key-reused', differing: ['path', 'body'] }, 422, 'no'],
  [{ code: 'in-progress', retryAfterMs: 1500 }, 409, 'later'],
  [{ code: 'outcome-unknown', attempt: 'earlier', retryAfterMs: 1000 }, 409, 'later'],
  [{ code: 'outcome-unknown', attempt: 'own', retryAfterMs: 1000 }, 504, 'later'],
  [{ code: 'response-not-stored', originalStatus: 201, location: '/o/1', etag: '"e"' }, 410, 'no'],
  [{ code: 'store-unavailable', retryAfterMs: 1 }, 503, 'later'],
  [{ code: 'overloaded', retryAfterMs: 1000 }, 503, 'later'],
  [{ code: 'transaction-rolled-back' }, 500, 'later'],
  [{ code: 'fingerprint-version', retryAfterMs: 5000 }, 503, 'later'],
  [{ code: 'body-unreadable' }, 500, 'no'],
  [{ code: 'body-too-large', max: 1_048_576, unit: 'bytes' }, 413, 'no'],
  [{ code: 'body-too-large', max: 256, unit: 'levels' }, 413, 'no'],
  [{ code: 'body-unsupported' }, 415, 'no'],
  [{ code: 'parked' }, 409, 'later'],
  [{ code: 'key-expired' }, 410, 'no'],
  [{ code: 'key-too-old' }, 400, 'no'],
  [{ code: 'no-such-operation' }, 404, 'no'],
  [{ code: 'deadline-passed' }, 408, 'no'],
]

function header(answer: RenderedAnswer, name: string): string | undefined {
  return answer.headers.find(([candidate]) => candidate.toLowerCase() === name.toLowerCase())?.[1]
}

function json(answer: RenderedAnswer): unknown {
  return JSON.parse(new TextDecoder().decode(answer.body))
}

describe('problem details', () => {
  it.each(examples)('renders %j as %i with the retry advice "%s"', (problem, status, retry) => {
    const answer = renderProblem(problem)
    expect(answer.status).toBe(status)
    expect(header(answer, 'Content-Type')).toBe('application/problem+json')
    expect(header(answer, 'Cache-Control')).toBe('no-store')
    expect(header(answer, 'Latchkey-Retry')).toBe(retry)
    expect(header(answer, 'Link')).toBeUndefined()
    expect(header(answer, 'Content-Length')).toBeUndefined()
    expect(json(answer)).toMatchObject({
      type: `urn:latchkey:problem:${problem.code}`,
      status,
      title: expect.stringMatching(/^[A-Z]/),
      detail: expect.stringMatching(/\.$/),
    })
  })

  it.each(examples)('names the extension members of %j in snake case of three letters or more', problem => {
    for (const name of Object.keys(json(renderProblem(problem)) as object)) expect(name).toMatch(/^[a-z][a-z_]{2,}$/)
  })

  it('says to the caller of an attempt that became unknown that it was started, and to a retry that nothing was repeated', () => {
    const detailOf = (attempt: 'own' | 'earlier') =>
      json(renderProblem({ code: 'outcome-unknown', attempt, retryAfterMs: 1000 }))
    expect(detailOf('own')).toMatchObject({
      detail: expect.stringMatching(/^Your request was started, and the server does not know whether it took effect\./),
    })
    expect(detailOf('own')).not.toMatchObject({ detail: expect.stringContaining('not executed') })
    expect(detailOf('earlier')).toMatchObject({ detail: expect.stringContaining('It was not executed again.') })
  })

  it('tells which parts of the request differ', () => {
    expect(json(renderProblem({ code: 'key-reused', differing: ['path', 'body'] }))).toMatchObject({
      differing_parts: ['path', 'body'],
      detail: expect.stringContaining('path, body'),
    })
  })

  it.each<[Problem, string, object]>([
    [{ code: 'body-too-large', max: 1_048_576, unit: 'bytes' }, '1048576 bytes', { bytes_max: 1_048_576 }],
    [{ code: 'body-too-large', max: 256, unit: 'levels' }, '256 levels of nesting', { levels_max: 256 }],
  ])('names the limit of %j', (problem, text, members) => {
    expect(json(renderProblem(problem))).toMatchObject({ ...members, detail: expect.stringContaining(text) })
  })

  it('carries the original status, Location and ETag of a response it did not keep', () => {
    const answer = renderProblem({ code: 'response-not-stored', originalStatus: 201, location: '/o/1', etag: '"e"' })
    expect(json(answer)).toMatchObject({ status: 410, original_status: 201 })
    expect([header(answer, 'Location'), header(answer, 'ETag')]).toEqual(['/o/1', '"e"'])
  })

  it("points to the site's own pages", () => {
    for (const problemBase of ['https://x.test/problems', 'https://x.test/problems/']) {
      const answer = renderProblem({ code: 'missing-key' }, { problemBase })
      expect(json(answer)).toMatchObject({ type: 'https://x.test/problems/missing-key' })
      expect(header(answer, 'Link')).toBe('<https://x.test/problems/missing-key>; rel="describedby"')
    }
  })

  it('knows a base that would break the header', () => {
    expect(isProblemBase('https://x.test/problems/')).toBe(true)
    for (const base of ['', 'problems/', 'javascript:x', 'https://x.test/>', 'https://x.test/\r\nA: b', 'https://']) {
      expect(isProblemBase(base)).toBe(false)
    }
  })

  it('rounds Retry-After up to whole seconds and never says 0', () => {
    expect([0, -5, 1, 999, 1000, 1001, 29_000].map(retryAfterSeconds)).toEqual(['1', '1', '1', '1', '1', '2', '29'])
    expect(header(renderProblem({ code: 'in-progress', retryAfterMs: 1500 }), 'Retry-After')).toBe('2')
    expect(header(renderProblem({ code: 'missing-key' }), 'Retry-After')).toBeUndefined()
  })
})

describe('hints for client libraries', () => {
  const problems = [...new Set(examples.map(([problem]) => problem))]
  const hinted = (hint: string | undefined) =>
    problems.filter(problem => header(renderProblem(problem), 'X-Should-Retry') === hint).map(({ code }) => code)

  it('asks for a retry only where time alone helps', () => {
    expect(hinted('true')).toEqual(['in-progress', 'store-unavailable', 'overloaded', 'fingerprint-version'])
  })

  it('leaves what it does not know to the library', () => {
    expect(hinted(undefined)).toEqual(['scope-unresolved', 'outcome-unknown', 'transaction-rolled-back'])
    const own: Problem = { code: 'outcome-unknown', attempt: 'own', retryAfterMs: 1000 }
    expect(header(renderProblem(own), 'X-Should-Retry')).toBeUndefined()
  })

  it('stops retries that wait for evidence or for a person, and those that never help', () => {
    const unknown: Problem = { code: 'outcome-unknown', attempt: 'earlier', retryAfterMs: 30_000 }
    for (const problem of [unknown, { code: 'parked' }, { code: 'row-unreadable', retryAfterMs: 1 }] as const) {
      expect(header(renderProblem(problem), 'X-Should-Retry')).toBe('false')
    }
    for (const [problem, , retry] of examples) {
      if (retry === 'no') expect(header(renderProblem(problem), 'X-Should-Retry')).toBe('false')
    }
  })

  it("says the same under Stripe's name in its profile, and only there", () => {
    for (const problem of problems) {
      const answer = renderProblem(problem, { profile: 'stripe' })
      expect(header(answer, 'Stripe-Should-Retry')).toBe(header(answer, 'X-Should-Retry'))
      expect(header(renderProblem(problem), 'Stripe-Should-Retry')).toBeUndefined()
    }
  })

  it('gives the time in milliseconds beside Retry-After, at least a second', () => {
    const msOf = (retryAfterMs: number) =>
      header(renderProblem({ code: 'in-progress', retryAfterMs }), 'Retry-After-Ms')
    expect([0, 999, 1000, 1500.2, 29_000].map(msOf)).toEqual(['1000', '1000', '1000', '1501', '29000'])
    expect(header(renderProblem({ code: 'missing-key' }), 'Retry-After-Ms')).toBeUndefined()
    expect(header(renderAccepted({ retryAfterMs: 2500 }), 'Retry-After-Ms')).toBe('2500')
  })
})

describe('the stripe profile', () => {
  it.each<[Problem, number, Record<string, unknown>]>([
    [{ code: 'missing-key' }, 400, { type: 'invalid_request_error' }],
    [
      { code: 'invalid-key', reason: 'empty', detail: 'Empty.' },
      400,
      { type: 'invalid_request_error', message: 'Empty.' },
    ],
    [{ code: 'key-reused', differing: ['body'] }, 400, { type: 'idempotency_error' }],
    [{ code: 'in-progress', retryAfterMs: 1 }, 409, { code: 'idempotency_key_in_use' }],
    [{ code: 'outcome-unknown', attempt: 'own', retryAfterMs: 1 }, 504, { type: 'api_error', code: 'outcome_unknown' }],
    [{ code: 'outcome-unknown', attempt: 'earlier', retryAfterMs: 1 }, 409, { type: 'api_error' }],
    [{ code: 'response-not-stored', originalStatus: 201 }, 410, { type: 'api_error', original_status: 201 }],
    [{ code: 'store-unavailable', retryAfterMs: 1 }, 503, { type: 'api_error' }],
    [
      { code: 'body-too-large', max: 9, unit: 'bytes' },
      413,
      { type: 'invalid_request_error', code: 'body_too_large', bytes_max: 9 },
    ],
    [{ code: 'body-unsupported' }, 415, { type: 'invalid_request_error', code: 'body_unsupported' }],
  ])('renders %j as %i', (problem, status, error) => {
    const answer = renderProblem(problem, { profile: 'stripe' })
    expect(answer.status).toBe(status)
    expect(header(answer, 'Content-Type')).toBe('application/json')
    expect(header(answer, 'Latchkey-Retry')).toMatch(/^(later|no)$/)
    expect(json(answer)).toEqual({ error: expect.objectContaining({ message: expect.any(String), ...error }) })
  })
})

describe('the accepted answer', () => {
  it('says that the request is in progress and when to ask again', () => {
    const answer = renderAccepted({ retryAfterMs: 2500 })
    expect(answer.status).toBe(202)
    expect(json(answer)).toEqual({ state: 'in_progress' })
    expect([header(answer, 'Retry-After'), header(answer, 'Latchkey-Retry')]).toEqual(['3', 'later'])
  })
})
