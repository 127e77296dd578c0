import { expect, it } from 'vitest'
import { systemClock } from 'latchkey'
import type { BulkPlan, BulkRow } from 'latchkey/admin'
import type { Api } from './http.ts'
import { startRemoteBulk } from './bulk.ts'

const matched = 4

/** A server whose process ends after as many rows as each start is worth. */
function server(rowsOfStarts: readonly number[]) {
  let starts = 0
  let finished = 0
  const plan = (): BulkPlan => ({
    ...{ bulkId: 'b', act: 'take', by: 'ann', reason: 'r', state: finished === matched ? 'done' : 'running' },
    ...{ matched, finished, excluded: {}, sample: [], validInMs: 1_000 },
  })
  const api: Api = async ({ path, query }) => {
    if (path.endsWith('/start')) {
      finished = Math.min(matched, finished + (rowsOfStarts[starts++] ?? 0))
      return { status: 202, body: { kind: 'started', plan: plan() } }
    }
    const after = Number(query?.['cursor'] ?? -1)
    const rows: BulkRow[] = Array.from({ length: finished }, (_, at) => ({ at, id: String(at), result: 'done' }))
    return { status: 200, body: path.endsWith('/rows') ? rows.filter(({ at }) => at > after) : plan() }
  }
  return { api, starts: () => starts }
}

it('starts a plan again whose process has ended, and hears of each row once', async () => {
  const { api, starts } = server([2, 0, 2])
  const seen: number[] = []
  const given = { bulkId: 'b', onRow: ({ at }: BulkRow) => void seen.push(at) }
  expect(await startRemoteBulk({ api, clock: systemClock, stillMs: 0 }, given)).toMatchObject({
    plan: { state: 'done' },
  })
  expect([seen, starts()]).toEqual([[0, 1, 2, 3], 3])
})

it('gives up when several starts in a row came no further, and says how far it is', async () => {
  const { api } = server([1])
  await expect(startRemoteBulk({ api, clock: systemClock, stillMs: 0 }, { bulkId: 'b' })).rejects.toMatchObject({
    exit: 5,
    message: expect.stringContaining('1 of 4 were done'),
  })
})
