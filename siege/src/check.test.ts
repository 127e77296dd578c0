import { describe, expect, it } from 'vitest'
import { check } from './check.ts'
import type { Evidence } from './evidence.ts'
import { type Run, runsById } from './app/runs.ts'

const runOf = (id: string): Run => ({ id, operation: 'transfers.create', attempt: 1, fence: 1 })
const clean: Evidence = {
  innocents: { requests: 3, acknowledged: ['i-1', 'i-2'], losses: {} },
  enemies: { 'hot-keys': { attacks: 1, whole: 1, heard: { 201: 1, 409: 2_999 }, untrue: [] } },
  runs: runsById(['i-1', 'i-2', 'hot'].map(runOf)),
  app: { deaths: [], peakMb: 300, peakMbMax: 500 },
  cache: undefined,
  rows: { unknown: 0, unfinished: 0 },
}
const kindsOf = (more: Partial<Evidence>) => check({ ...clean, ...more }).map(({ kind }) => kind)

describe('the checker of the siege', () => {
  it('passes a run in which nobody lost anything', () => {
    expect(check(clean)).toEqual([])
  })

  it.each<[string, string, Partial<Evidence>]>([
    ['lost', 'a refusal of an innocent request', { innocents: { ...clean.innocents, losses: { 'orders 503': 1 } } }],
    ['twice', 'a handler that ran twice, whoever asked', { runs: runsById(['i-1', 'i-2', 'hot', 'hot'].map(runOf)) }],
    [
      'unclaimed',
      'a run without a claim, although the store was up',
      { runs: runsById([...['i-1', 'i-2'].map(runOf), { ...runOf('hot'), fence: 0 }]) },
    ],
    ['never-ran', 'a success that nothing stands behind', { runs: runsById([runOf('i-1')]) }],
    [
      'untrue',
      "an answer that was somebody else's",
      { enemies: { 'bad-rows': { attacks: 1, whole: 1, heard: { 201: 1 }, untrue: ['x'] } } },
    ],
    ['memory', 'a process that grew beyond its limit', { app: { ...clean.app, peakMb: 501 } }],
    ['death', 'a process that died', { app: { ...clean.app, deaths: ['exit code 1'] } }],
    ['unknown', 'a row that nobody can explain', { rows: { unknown: 1, unfinished: 0 } }],
    ['unfinished', 'a row that never ended', { rows: { unknown: 0, unfinished: 1 } }],
    ['nothing-tried', 'innocents who did nothing', { innocents: { requests: 0, acknowledged: [], losses: {} } }],
    [
      'nothing-tried',
      'an enemy who never came',
      { enemies: { 'hot-keys': { attacks: 0, whole: 0, heard: {}, untrue: [] } } },
    ],
    [
      'nothing-tried',
      'an enemy whom nobody answered',
      { enemies: { 'hot-keys': { attacks: 3, whole: 3, heard: {}, untrue: [] } } },
    ],
    [
      'nothing-tried',
      'an enemy whose every attack was cut short',
      { enemies: { 'unread-bodies': { attacks: 2, whole: 0, heard: { ABORT_ERR: 2 }, untrue: [] } } },
    ],
    [
      'nothing-tried',
      'a cache that answered nothing',
      { cache: { hits: 0, faults: { flushed: 1, killed: 1, frozen: 1 } } },
    ],
    [
      'nothing-tried',
      'a cache that never was away',
      { cache: { hits: 9, faults: { flushed: 1, killed: 0, frozen: 1 } } },
    ],
  ])('says %s: %s', (kind, _, more) => {
    expect(kindsOf(more)).toEqual([kind])
  })
})
