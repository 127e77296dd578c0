import { describe, expect, it } from 'vitest'
import { type Actor, isLegal, type Place, transitions } from './transitions.ts'

const states: readonly Place[] = ['in_progress', 'completed', 'failed_retryable', 'unknown']

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

  it('has no pending row: nothing defers work yet', () => {
    expect(transitions.filter(row => row.from === 'pending' || row.to === 'pending')).toEqual([])
  })

  it('raises the fence exactly where a request or a resumer is granted the row', () => {
    for (const { from, to, by, fence } of transitions) {
      const grant = by.some(actor => actor === 'request' || actor === 'resumer') && to !== 'unknown'
      expect({ from, to, by, fence }).toEqual({ from, to, by, fence: grant ? 'rises' : 'stays' })
    }
  })

  it('lets no request, resumer, owner or sweeper move an unknown row: only evidence does', () => {
    expect(transitions.filter(row => row.from === 'unknown').flatMap(row => row.by)).toEqual([
      'late owner',
      'operator',
      'late owner',
      'operator',
    ])
  })

  it('lets the reaper delete finished rows only', () => {
    expect(transitions.filter(row => row.by.includes('reaper')).map(row => row.from)).toEqual([
      'completed',
      'failed_retryable',
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
  ]
  it.each(legal)('allows %s to %s by the %s', (from, to, by) => {
    expect(isLegal(from, to, by)).toBe(true)
  })
  it.each(illegal)('forbids %s to %s by the %s', (from, to, by) => {
    expect(isLegal(from, to, by)).toBe(false)
  })
})
