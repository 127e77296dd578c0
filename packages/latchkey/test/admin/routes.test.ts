import { expect, it } from 'vitest'
import { createLatchkey, silentTelemetry } from '../../src/index.ts'
import { parkOne } from '../outbox/park-one.ts'
import { openApi } from './api.ts'

const reason = 'ticket 7'
const minuteMs = 60_000
const denial = { answer: 'did_not_happen', evidence: { kind: 'ticket', reference: '4711' }, reason }

it('says who asks, what they may, and where they are', async () => {
  const { send } = await openApi({ environment: 'production' })
  expect((await send('session', { who: 'vic' })).body).toMatchObject({
    name: 'vic',
    rights: ['view'],
    environment: 'production',
    csrf: 'same-origin',
  })
})

it.each([
  'overview',
  'operations',
  'workers',
  'rates',
  'work?kind=unknown',
  'work/groups?kind=parked',
  'outbox',
  'outbox/lanes',
  'outbox/parked',
  'inbox/parked',
  'proposals',
  'audit',
  'audit.ndjson',
])('serves %s to a viewer, and not again to who has it', async path => {
  const { send } = await openApi()
  const first = await send(path, { who: 'vic' })
  expect(first.status).toBe(200)
  const etag = first.headers.get('etag') ?? ''
  expect(etag).toMatch(/^W\/"/)
  const again = await send(path, { who: 'vic', headers: { 'if-none-match': etag } })
  // Ages are part of what some lists show.
  expect([200, 304]).toContain(again.status)
  if (path === 'proposals') expect(again).toMatchObject({ status: 304, text: '' })
})

it('finds a key by words that are in no address, and shows its row and its story', async () => {
  const { send, id } = await openApi()
  for (const body of [{ scope: 'acme', operation: 'pay', key: 'k' }, { reference: 'ch_1' }])
    expect((await send('keys/lookup', { who: 'vic', method: 'POST', body })).body).toMatchObject([
      { id, state: 'unknown' },
    ])
  expect((await send(`keys/${id}`, { who: 'vic' })).body).toMatchObject({
    id,
    operation: 'pay',
    references: [{ text: 'ch_1' }],
  })
  expect((await send(`keys/${id}/timeline`, { who: 'vic' })).body[0]).toMatchObject({ kind: 'created' })
  expect((await send('keys/lookup', { method: 'POST', body: {} })).status).toBe(400)
})

it('names the right that a role lacks', async () => {
  const { act, id } = await openApi()
  expect(await act('vic', `keys/${id}/take`, { reason })).toMatchObject({
    status: 403,
    body: { code: 'not-permitted', right: 'take' },
  })
})

it('answers 404 about a row of a scope that a person may not see, as about one that is not there', async () => {
  const { send, act, id } = await openApi()
  const hidden = await send(`keys/${id}`, { who: 'lim' })
  const absent = await send(`keys/${id.replace(/^./, id.startsWith('f') ? '0' : 'f')}`, { who: 'lim' })
  expect(hidden).toMatchObject({ status: 404, body: { code: 'not-found' } })
  expect(hidden.text).toBe(absent.text)
  expect((await act('lim', `keys/${id}/take`, { reason })).status).toBe(404)
})

it('refuses an act without a version, and one with another version by 412 and the row as it is', async () => {
  const { send, act, id, version } = await openApi()
  const old = await version()
  expect((await act('ann', `keys/${id}/take`, { reason })).status).toBe(200)
  expect(await act('bea', `keys/${id}/take`, { reason }, { 'if-match': `"${old}"` })).toMatchObject({
    status: 412,
    body: { code: 'row-moved', row: { owner: 'ann' } },
  })
  const headers = { 'idempotency-key': '"x"' }
  expect((await send(`keys/${id}/take`, { method: 'POST', body: { reason }, headers })).status).toBe(428)
  expect(
    (await send(`keys/${id}/take`, { method: 'POST', body: { reason }, headers: { ...headers, 'if-match': '*' } }))
      .status,
  ).toBe(428)
})

it('acts once for a key, answers its repetition alike, and refuses the key for another act', async () => {
  const { act, send, id, version } = await openApi()
  const headers = { 'idempotency-key': '"same"', 'if-match': `"${await version()}"` }
  const first = await act('ann', `keys/${id}/take`, { reason }, headers)
  const again = await act('ann', `keys/${id}/take`, { reason }, headers)
  expect([again.status, again.text]).toEqual([200, first.text])
  expect((await act('ann', `keys/${id}/park`, { reason }, headers)).body.code).toBe('key-reused')
  const entries = (await send('audit')).body.items
  expect(entries.filter((entry: { act: string }) => entry.act === 'take')).toHaveLength(1)
  // The keys of one person are not those of another.
  expect((await act('bea', `keys/${id}/take`, { reason }, { 'idempotency-key': '"same"' })).status).toBe(200)
})

it('needs a key, a reason, and no field that it does not know', async () => {
  const { send, act, id, version } = await openApi()
  const headers = { 'if-match': `"${await version()}"` }
  expect((await send(`keys/${id}/take`, { method: 'POST', body: { reason }, headers })).body.code).toBe(
    'idempotency-key-required',
  )
  expect((await act('ann', `keys/${id}/take`, {})).body).toMatchObject({
    status: 400,
    code: 'invalid',
    detail: expect.stringContaining('reason'),
  })
  expect((await act('ann', `keys/${id}/take`, { reason, force: true })).body.detail).toContain('force')
  expect((await send(`keys/${id}/take`, { method: 'POST', body: '{', headers })).status).toBe(400)
})

it('refuses to settle inside the quarantine, asks for a second person after it, and lets that one decide', async () => {
  const { act, send, clock, id } = await openApi()
  expect(await act('bea', `keys/${id}/settle`, denial)).toMatchObject({
    status: 409,
    body: { code: 'quarantine-not-over' },
  })
  clock.advance(11 * minuteMs)
  const made = await act('bea', `keys/${id}/settle`, denial)
  expect(made).toMatchObject({
    status: 202,
    body: { kind: 'second-person-needed', proposal: { by: 'bea', act: 'settle.did_not_happen' } },
  })
  const path = `proposals/${made.body.proposal.proposalId}/approve`
  expect((await act('bea', path, { reason })).body.code).toBe('own-proposal')
  expect((await act('ann', path, { reason })).body).toMatchObject({ code: 'not-permitted', right: 'approve' })
  expect(await act('carl', path, { reason })).toMatchObject({
    status: 200,
    body: { kind: 'done', row: { state: 'failed_retryable' } },
  })
  const lines = (await send('audit.ndjson')).text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(lines.map(({ by, act: did, refused }) => [by, did, refused])).toEqual([
    ['bea', 'settle.did_not_happen', 'quarantine-not-over'],
    ['bea', 'propose', undefined],
    ['bea', 'approve', 'own-proposal'],
    ['ann', 'approve', 'not-permitted'],
    ['carl', 'settle', undefined],
  ])
})

it('reveals a body by an act, and stores it nowhere else', async () => {
  const { act, send, id } = await openApi()
  const response = { status: 201, json: { card: '4242' } }
  await act('ann', `keys/${id}/settle`, {
    answer: 'happened',
    evidence: { kind: 'reference', reference: 'ch_1' },
    response,
    reason,
  })
  expect((await send(`keys/${id}`)).text).not.toContain('4242')
  const shown = await act('bea', `keys/${id}/reveal`, { what: 'outcome', reason })
  expect(shown.body).toMatchObject({ kind: 'revealed', status: 201, body: { text: '{"card":"4242"}' } })
  expect((await act('ann', `keys/${id}/reveal`, { what: 'outcome', reason })).body.code).toBe('not-permitted')
})

it('writes each body that is shown into the audit, also under a key that has shown another', async () => {
  const { act, send, store, id } = await openApi()
  const outcome = { answer: 'happened', evidence: { kind: 'reference', reference: 'ch_1' }, reason } as const
  await act('ann', `keys/${id}/settle`, { ...outcome, response: { status: 201, json: 'one' } })
  const latchkey = createLatchkey({ store, scope: () => 'acme', maintenance: false, telemetry: silentTelemetry })
  await latchkey.guarded('pay', { onFailure: 'hold' }).run({ scope: 'acme', key: 'other', input: 1 }, () => 'two')
  const other = latchkey.identify({ scope: 'acme', operation: 'pay', key: 'other' })
  const reveal = async (row: string) => {
    const headers = { 'idempotency-key': '"same"', 'if-match': `"${(await send(`keys/${row}`)).body.version}"` }
    return (await act('bea', `keys/${row}/reveal`, { what: 'outcome', reason }, headers)).body.body.text
  }
  expect([await reveal(id), await reveal(other), await reveal(other)]).toEqual(['"one"', '"two"', '"two"'])
  const entries = (await send('audit')).body.items.filter((entry: { act: string }) => entry.act === 'reveal')
  expect(entries.map((entry: { id: string }) => entry.id)).toEqual([other, other, id])
})

it.each([
  ['settle', { answer: 'happened', evidence: null, reason }, 'evidence must be an object'],
  ['settle', { answer: 'happened', evidence: { kind: 'ticket', reference: 7 }, reason }, 'reference must be a text'],
  ['settle', { answer: 'happened', evidence: { kind: 'ticket', id: '7' }, reason }, 'evidence has an unknown field id'],
  ['take', { reason: ['r'] }, 'reason must be a text'],
  ['bulk', { act: 'take', reason, ids: 'all' }, 'ids must be a list of texts'],
  ['bulk', { act: 'take', reason, filter: { kind: 'every' } }, 'kind of a filter must be one of'],
  ['bulk', { act: 'take', reason, filter: { kind: 'unknown', limit: 5 } }, 'filter has an unknown field limit'],
  ['bulk', { act: 'take', reason, filter: { kind: 'unknown', scope: [] } }, 'scope'],
  ['bulk', { act: 'import_evidence', reason, file: { csv: 'a,b' } }, 'file.match must be a column'],
  ['lookup', { scope: 7, operation: 'pay', key: 'k' }, 'scope must be a text or a list of texts'],
  ['lookup', { scope: '', operation: 'pay', key: 'k' }, 'scope'],
])('answers 400 to a body of %s that is not what it should be: %j', async (what, body, detail) => {
  const { act, id } = await openApi()
  const path = { settle: `keys/${id}/settle`, take: `keys/${id}/take`, bulk: 'bulk', lookup: 'keys/lookup' }[what] ?? ''
  const answer = await act('bea', path, body)
  expect([answer.status, answer.body.code]).toEqual([400, 'invalid'])
  expect(answer.body.detail).toContain(detail)
})

it('answers 404 about messages whose names are no names of messages', async () => {
  const { act } = await openApi()
  for (const path of [
    'outbox/parked/x/redrive',
    'outbox/parked/x/skip',
    'inbox/parked/x/redrive',
    'inbox/parked/x/discard',
  ])
    expect((await act('bea', path, { reason })).status, path).toBe(404)
})

it('limits acts in a minute, and tells when the next one may come', async () => {
  const { act, clock, id } = await openApi({ actsPerMinute: 1 })
  expect((await act('ann', `keys/${id}/note`, { reason })).status).toBe(200)
  const key = { 'idempotency-key': '"again"' }
  const limited = await act('ann', `keys/${id}/note`, { reason }, key)
  expect([limited.status, Number(limited.headers.get('retry-after')) > 0]).toEqual([429, true])
  clock.advance(2 * minuteMs)
  expect((await act('ann', `keys/${id}/note`, { reason }, key)).status).toBe(200)
})

it('plans a bulk act, runs it beside the answer, and shows each result', async () => {
  const { act, send, id } = await openApi()
  const planned = await act('ann', 'bulk', { act: 'take', reason, filter: { kind: 'unknown' } })
  expect(planned).toMatchObject({ status: 201, body: { plan: { matched: 1, sample: [id], state: 'planned' } } })
  const { bulkId } = planned.body.plan
  expect((await act('vic', `bulk/${bulkId}/start`, {})).body).toMatchObject({ code: 'not-permitted', right: 'bulk' })
  expect((await act('ann', `bulk/${bulkId}/start`, {})).status).toBe(202)
  await expect.poll(async () => (await send(`bulk/${bulkId}`)).body.state).toBe('done')
  expect((await send(`bulk/${bulkId}/rows`)).body).toEqual([{ at: 0, id, result: 'done' }])
})

it('skips a parked message once, and answers 404 when it is gone', async () => {
  const { act, send, store } = await openApi()
  const position = await parkOne(store)
  const path = `outbox/parked/${position}/skip`
  expect((await act('ann', path, { reason: 'r' })).body).toMatchObject({ status: 403, right: 'skip' })
  expect(await act('bea', path, { reason: 'r' })).toMatchObject({ status: 200, body: { kind: 'done' } })
  expect((await act('bea', path, { reason: 'r' })).status).toBe(404)
  expect((await send('outbox/parked')).body.items).toEqual([])
  expect((await send(path)).status).toBe(405)
  expect((await act('bea', `outbox/parked/${position}/hide`, { reason: 'r' })).status).toBe(404)
})

it('knows no other route, no other method, and no body beyond its limit', async () => {
  const { send, act, id } = await openApi({ bodyBytesMax: 100 })
  for (const path of ['nothing', 'keys', `keys/${id}/nothing`, 'work/other', 'outbox/x', 'audit/x/y'])
    expect((await send(path)).body.code, path).toBe('no-such-route')
  expect((await send(`keys/${id}/take`)).body.code).toBe('method-not-allowed')
  expect((await send(`keys/${id}/take`, { method: 'DELETE' })).body.code).toBe('method-not-allowed')
  expect((await act('ann', `keys/${id}/take`, { reason: 'x'.repeat(200) })).body.code).toBe('body-too-large')
  expect((await send(`keys/${id}`, { method: 'HEAD' })).text).toBe('')
})
