import { describe, expect, it } from 'vitest'
import { deadlineOutcome } from '../../engine/run/enqueue.ts'
import { renderProblem } from '../../wire/render-problem.ts'

describe('the outcome of work that was not begun in time', () => {
  it.each([
    ['as a problem', {}],
    ['as a problem of the site', { problemBase: 'https://shop.test/problems' }],
    ['as a problem of the site under a fragment', { problemBase: 'https://shop.test/problems#' }],
    ['in the words of Stripe', { profile: 'stripe' }],
  ] as const)('is what the wire would say, %s', (_, http) => {
    const outcome = deadlineOutcome(http)
    const rendered = renderProblem({ code: 'deadline-passed' }, http)
    expect(outcome.status).toBe(rendered.status)
    expect(Buffer.from(outcome.body ?? []).toString()).toBe(Buffer.from(rendered.body).toString())
    const type = rendered.headers.find(([name]) => name === 'Content-Type')?.[1]
    expect(outcome.headers).toContainEqual(['content-type', type])
  })
})
