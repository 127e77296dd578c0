import { describe, expect, it } from 'vitest'
import { byMinute, percentText, sumOf } from '../page/api/rate-sums.ts'
import { loopStates } from '../page/api/worker-health.ts'
import { emptyForm, settleBody } from '../page/key/answer.ts'
import { storedText } from '../page/key/stored-text.ts'
import { atMostText, durationText, utcText } from '../page/parts/duration.ts'
import { rangeOf } from '../page/work/drawn-range.ts'
import { guessColumns, listOf } from '../page/work/export-columns.ts'
import { holdList } from '../page/work/held-list.ts'

const worker = { process: 'web-3', turns: 1, failures: 0, lastError: undefined, detail: undefined }

describe('the loops of the workers', () => {
  it('are silent two minutes after the last turn in any process, counted from when it was written', () => {
    const seen = { ...worker, loop: 'sweeper', lastTurnAgoMs: 60_000 }
    expect(loopStates([{ ...seen, seenAgoMs: 60_000 }])).toMatchObject([{ isSilent: false, lastTurnMs: 120_000 }])
    expect(loopStates([{ ...seen, seenAgoMs: 60_001 }])).toMatchObject([{ isSilent: true, process: 'web-3' }])
    const other = { ...seen, process: 'web-4', seenAgoMs: 0 }
    expect(loopStates([{ ...seen, seenAgoMs: 600_000 }, other])).toMatchObject([{ isSilent: false, process: 'web-4' }])
  })

  it('include the sweeper where no process has ever reported one', () => {
    expect(loopStates([])).toEqual([{ loop: 'sweeper', lastTurnMs: undefined, isSilent: true, process: undefined }])
  })

  it('are silent where a process beats and its loop has never turned', () => {
    const stuck = { ...worker, loop: 'relay', lastTurnAgoMs: undefined, seenAgoMs: 100 }
    expect(loopStates([stuck]).find(({ loop }) => loop === 'relay')).toMatchObject({ isSilent: true })
  })
})

describe('a list under the eyes of a reader', () => {
  const rows = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]

  it('keeps new rows back, and counts them', () => {
    expect(holdList(new Set(['a', 'c']), rows)).toEqual({ shown: [{ id: 'a' }, { id: 'c' }], fresh: 1 })
  })

  it('drops rows that are gone', () => {
    expect(holdList(new Set(['a', 'x']), rows).shown).toEqual([{ id: 'a' }])
  })

  it('shows everything where nothing was shown, or nothing of it is left', () => {
    expect(holdList(undefined, rows)).toEqual({ shown: rows, fresh: 0 })
    expect(holdList(new Set(['x']), rows)).toEqual({ shown: rows, fresh: 0 })
  })
})

describe('the part of a list that is drawn', () => {
  const heights = Array.from({ length: 100 }, () => 400)
  const windowPx = 1_000

  it('is what the window shows and 800 pixels on both sides, and leaves the height of the rest', () => {
    expect(rangeOf(heights, { topPx: 0, windowPx })).toEqual({ first: 0, last: 4, abovePx: 0, belowPx: 38_000 })
    expect(rangeOf(heights, { topPx: 20_000, windowPx })).toEqual({
      first: 48,
      last: 54,
      abovePx: 19_200,
      belowPx: 18_000,
    })
  })

  it('is the nearest block where the list is far above the window, or far below', () => {
    expect(rangeOf(heights, { topPx: 90_000, windowPx })).toMatchObject({ first: 99, last: 99, belowPx: 0 })
    expect(rangeOf(heights, { topPx: -90_000, windowPx })).toMatchObject({ first: 0, last: 0, abovePx: 0 })
    expect(rangeOf([], { topPx: 0, windowPx })).toEqual({ first: 0, last: 0, abovePx: 0, belowPx: 0 })
  })
})

describe("a provider's export", () => {
  it('is matched by the downstream key where it has one, with the statuses that it contains', () => {
    const guess = guessColumns('\uFEFFid,idempotency_key,status\nch_1,k1,succeeded\nch_2,k2,failed\nch_3,k3,odd\n')
    expect(guess).toEqual({
      columns: ['id', 'idempotency_key', 'status'],
      match: 'idempotency_key',
      by: 'downstream_key',
      status: 'status',
      reference: 'id',
      happened: 'succeeded',
      didNotHappen: 'failed',
    })
  })

  it('is matched by reference where it has no key', () => {
    expect(guessColumns('reference;state\nA-1;paid\n')).toMatchObject({
      match: 'reference',
      by: 'reference',
      status: 'state',
    })
  })

  it('takes a list of words apart', () => {
    expect(listOf(' paid, captured ,')).toEqual(['paid', 'captured'])
  })
})

describe('an answer', () => {
  const effect = { name: 'charge', epoch: 0, downstreamKey: 'k', repeatable: false }
  const given = { ...emptyForm, reason: 'seen at the provider', reference: 'ch_1', json: '{"id":"ch_1"}' }

  it('is about the open effect, with its result as the provider gave it', () => {
    expect(settleBody({ ...given, answer: 'happened' }, effect)).toEqual({
      body: {
        effect: 'charge',
        answer: 'happened',
        evidence: { kind: 'reference', reference: 'ch_1', value: { id: 'ch_1' } },
        reason: 'seen at the provider',
      },
    })
  })

  it('is about the whole operation where no effect is open, with the response for clients', () => {
    expect(settleBody({ ...given, answer: 'happened', status: '200' }, undefined)).toMatchObject({
      body: { answer: 'happened', response: { status: 200, json: { id: 'ch_1' } } },
    })
  })

  it('is not sent without a choice, or with a result that is no JSON', () => {
    expect(settleBody(given, effect)).toHaveProperty('fault')
    expect(settleBody({ ...given, answer: 'happened', json: '{' }, effect)).toHaveProperty('fault')
  })

  it('sends nothing of a result with a no', () => {
    const no = { ...given, answer: 'did_not_happen', evidenceKind: 'denial', evidence: 'ticket 4711' } as const
    expect(settleBody(no, effect)).toEqual({
      body: {
        effect: 'charge',
        answer: 'did_not_happen',
        evidence: { kind: 'denial', reference: 'ticket 4711' },
        reason: 'seen at the provider',
      },
    })
  })
})

describe('figures', () => {
  const rate = (metric: string, minute: number, count: number) => ({
    operation: 'pay',
    metric,
    count,
    minuteMs: minute * 60_000,
  })
  const rates = [rate('reserved', 10, 5), rate('reserved', 12, 7), rate('replayed', 10, 1)]

  it('have a minute for every minute, also those without a count', () => {
    expect(byMinute(rates, 'reserved')).toEqual({ minutes: [600_000, 660_000, 720_000], counts: [5, 0, 7] })
    expect(byMinute([], 'reserved').minutes).toEqual([])
  })

  it('are summed by metric', () => {
    expect(sumOf(rates, 'reserved')).toBe(12)
    expect(sumOf(rates, 'other')).toBe(0)
  })

  it('say nothing about nothing', () => {
    expect(percentText(0, 0)).toBe('–')
    expect(percentText(3, 10_000)).toBe('0.03 %')
    expect(percentText(31, 1_000)).toBe('3.1 %')
  })

  it('are durations in two units, and times in UTC', () => {
    expect(durationText(8_040_999)).toBe('2 h 14 min')
    expect(durationText(370_000)).toBe('6 min 10 s')
    expect(durationText(86_400_000)).toBe('1 d')
    expect(durationText(-5)).toBe('0 s')
    expect(utcText(0)).toBe('1970-01-01 00:00:00 UTC')
  })

  it('say of a time that was counted in steps how long it was at most', () => {
    expect([1, 500, 1_000, 120_000].map(atMostText)).toEqual(['≤ 1 ms', '≤ 500 ms', '≤ 1 s', '≤ 2 min'])
    expect(atMostText(undefined)).toBe('> 1 h')
  })
})

describe('stored bytes', () => {
  it('are shown as the text that they are, digit for digit', () => {
    expect(storedText({ text: '{"id":12345678901234567890}' })).toBe('{"id":12345678901234567890}')
  })

  it('are shown in hexadecimal where they are no text', () => {
    expect(storedText({ base64: btoa('\u00ff\u0000') })).toBe('ff 00')
  })
})
