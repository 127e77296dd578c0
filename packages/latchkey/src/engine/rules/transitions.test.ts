import { describe, expect, it } from 'vitest'
import { type Actor, isLegal, type Place, transitions } from './transitions.ts'

const states: readonly Place[] = ['pending', 'in_progress', 'completed', 'failed_retryable', 'unknown']

describe('the table of transitions', () => {
  it('leaves no state without an exit', () => {
    for (const state of states)
      expect(transitions.filter(row => row.from === state && row.to !== state)).not.toEqual([])
  })

  it('reaches every state from nothing', () => {
    const reached = new Set<Place>(['none'])
    for (let rounds = 0; rounds < transitions.length; rounds++) {
      for (const row of transitions) if (reached.has(row.from)) reached.add(row.to)
    }
    expect([...reached].sort()).toEqual(['none', ...states].sort())
  })

  it('leads from every state back to nothing, so that no row is kept for good', () => {
    const ending = new Set<Place>(['none'])
    for (let rounds = 0; rounds < transitions.length; rounds++) {
      for (const row of transitions) if (ending.has(row.to)) ending.add(row.from)
    }
    expect([...ending].sort()).toEqual(['none', ...states].sort())
  })

  it('runs pending work only by a grant, and makes it only of deferred work or of settled phased work', () => {
    expect(transitions.filter(row => row.from === 'pending' && row.to !== 'pending').map(row => row.fence)).toEqual([
      'rises',
      'rises',
    ])
    const into = transitions.filter(row => row.to === 'pending' && row.from !== 'pending')
    expect(into.map(row => `${row.from}: ${row.guard.slice(0, row.guard.indexOf(':'))}`)).toEqual([
      'none: deferred',
      'completed: deferred',
      'failed_retryable: deferred',
      'unknown: phased',
    ])
  })

  it('raises the fence exactly where a request or a resumer is granted or queues the row', () => {
    for (const { from, to, by, fence } of transitions) {
      const grant = by.some(actor => actor === 'request' || actor === 'resumer') && to !== 'unknown'
      expect({ from, to, by, fence }).toEqual({ from, to, by, fence: grant ? 'rises' : 'stays' })
    }
  })

  it('lets no request, resumer, owner or sweeper move an unknown row: only evidence does', () => {
    const movers = transitions.filter(row => row.from === 'unknown' && row.to !== 'unknown').map(row => row.by)
    expect(movers).toEqual(Array.from({ length: 3 }, () => ['late owner', 'reconciler', 'operator']))
    const stayers = transitions.filter(row => row.from === 'unknown' && row.to === 'unknown').flatMap(row => row.by)
    expect(stayers).toEqual(['reconciler', 'operator'])
  })

  it('gives the reconciler no row that is not unknown, and makes its negative evidence wait', () => {
    const its = transitions.filter(row => row.by.includes('reconciler'))
    expect(new Set(its.map(row => row.from))).toEqual(new Set(['unknown']))
    for (const row of its.filter(row => row.to === 'failed_retryable' || row.to === 'pending'))
      expect(row.guard).toContain('the reconciler only after the quarantine')
  })

  it('lets the reaper take finished rows only', () => {
    expect(transitions.filter(row => row.by.includes('reaper')).map(row => `${row.from} to ${row.to}`)).toEqual([
      'completed to completed',
      'completed to none',
      'failed_retryable to none',
    ])
  })

  it('says each transition of an actor and guard once', () => {
    const said = transitions.flatMap(row => row.by.map(by => `${row.from} ${row.to} ${by} ${row.guard}`))
    expect(new Set(said).size).toBe(said.length)
  })
})

describe('isLegal', () => {
  const legal: [Place, Place, Actor][] = [
    ['none', 'in_progress', 'request'],
    ['in_progress', 'completed', 'owner'],
    ['in_progress', 'in_progress', 'resumer'],
    ['failed_retryable', 'failed_retryable', 'operator'],
    ['in_progress', 'unknown', 'sweeper'],
    ['unknown', 'completed', 'late owner'],
    ['completed', 'none', 'operator'],
    ['none', 'pending', 'request'],
    ['pending', 'in_progress', 'resumer'],
    ['unknown', 'pending', 'reconciler'],
    ['unknown', 'failed_retryable', 'reconciler'],
    ['unknown', 'unknown', 'operator'],
    ['completed', 'completed', 'reaper'],
  ]
  const illegal: [Place, Place, Actor][] = [
    ['none', 'unknown', 'request'],
    ['in_progress', 'completed', 'sweeper'],
    ['in_progress', 'none', 'reaper'],
    ['unknown', 'in_progress', 'request'],
    ['unknown', 'in_progress', 'resumer'],
    ['none', 'in_progress', 'resumer'],
    ['completed', 'in_progress', 'resumer'],
    ['unknown', 'none', 'reaper'],
    ['completed', 'failed_retryable', 'owner'],
    ['completed', 'in_progress', 'owner'],
    ['failed_retryable', 'unknown', 'sweeper'],
    ['pending', 'none', 'reaper'],
    ['pending', 'unknown', 'sweeper'],
    ['pending', 'completed', 'reconciler'],
    ['in_progress', 'completed', 'reconciler'],
    ['completed', 'failed_retryable', 'reconciler'],
    ['unknown', 'pending', 'request'],
    ['in_progress', 'pending', 'owner'],
  ]
  it.each(legal)('allows %s to %s by the %s', (from, to, by) => {
    expect(isLegal(from, to, by)).toBe(true)
  })
  it.each(illegal)('forbids %s to %s by the %s', (from, to, by) => {
    expect(isLegal(from, to, by)).toBe(false)
  })
})
