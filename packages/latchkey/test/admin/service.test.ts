import { describe, expect, it } from 'vitest'
import { createAdmin, type Actor, type AdminOptions, type AdminRow, type Person } from '../../src/admin/index.ts'
import { createLatchkey, silentTelemetry, type Storable } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { fakeClock } from '../engine/fake-clock.ts'
import { parkOne } from '../outbox/park-one.ts'

const minuteMs = 60_000
const quarantineMs = 10 * minuteMs

const ann: Person = { name: 'ann', role: 'operator' }
const bea: Person = { name: 'bea', role: 'approver' }
const carl: Person = { name: 'carl', role: 'approver' }
const vic: Person = { name: 'vic', role: 'viewer' }
const by = (who: Person, requestId?: string): Actor => ({ who, source: 'cli', requestId })
const reason = 'ticket 7'
const evidence = { kind: 'ticket', reference: '4711' } as const

function open(options: AdminOptions = {}) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const latchkey = createLatchkey({ store, scope: () => 'acme', clock, maintenance: false, telemetry: silentTelemetry })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  const admin = createAdmin({ latchkey, ...options })
  const run = (scope: string, key: string, handler: () => Promise<Storable>) =>
    pay.run({ scope, key, input: key }, async x => {
      await x.reference(`ch_${key}`)
      return handler()
    })
  const unknownRow = async (key: string, scope = 'acme') => {
    await run(scope, key, async () => Promise.reject(new Error('read timeout'))).catch(() => {})
    return latchkey.identify({ scope, operation: 'pay', key })
  }
  const row = async (id: string, who = bea): Promise<AdminRow> => {
    const found = await admin.key({ who, source: 'cli' }, id)
    if (found.kind !== 'found') throw new Error(found.kind)
    return found.value
  }
  const on = async (id: string) => ({ id, version: (await row(id)).version, reason })
  const entries = async () => {
    const page = await admin.audit(by(bea), { limit: 100 })
    return page.kind === 'found' ? page.value.items : []
  }
  return { clock, store, latchkey, admin, run, unknownRow, row, on, entries }
}

const denial = { answer: 'did_not_happen', evidence } as const

describe('rights', () => {
  it('refuse an act by the name of the right that is missing, and write the attempt down', async () => {
    const { admin, unknownRow, on, entries } = open()
    const id = await unknownRow('k')
    const given = await on(id)
    expect(await admin.take(by(vic), given)).toEqual({ kind: 'not-permitted', right: 'take' })
    expect(await admin.settle(by(vic), { ...given, ...denial })).toEqual({
      kind: 'not-permitted',
      right: 'settle.did_not_happen',
    })
    expect(await admin.settle(by(vic), { ...given, answer: 'happened', evidence })).toEqual({
      kind: 'not-permitted',
      right: 'settle.happened',
    })
    expect(await admin.reveal(by(ann), { ...given, what: 'outcome' })).toEqual({
      kind: 'not-permitted',
      right: 'reveal',
    })
    expect((await entries()).map(({ by: who, act, refused, detail }) => [who, act, refused, detail])).toEqual([
      ['ann', 'reveal', 'not-permitted', 'reveal'],
      ['vic', 'settle.happened', 'not-permitted', 'settle.happened'],
      ['vic', 'settle.did_not_happen', 'not-permitted', 'settle.did_not_happen'],
      ['vic', 'take', 'not-permitted', 'take'],
    ])
    expect((await admin.work(by(vic), { kind: 'unknown' })).kind).toBe('found')
    expect(await admin.work(by({ name: 'x', role: [] }), { kind: 'unknown' })).toEqual({
      kind: 'not-permitted',
      right: 'view',
    })
  })

  it('show what a person may do with a row, and why not the rest', async () => {
    const { admin, unknownRow } = open()
    const id = await unknownRow('k')
    const found = await admin.key(by(bea), id)
    expect(found).toMatchObject({
      kind: 'found',
      value: { may: expect.arrayContaining(['settle.happened', 'look_up']) },
    })
    if (found.kind !== 'found') return
    const why = Object.fromEntries(found.value.mayNot.map(each => [each.right, each.why]))
    expect(why['forget']).toContain('only a completed row')
    expect(why['settle.did_not_happen']).toContain('quarantine')
    expect(why['resume']).toContain('not parked')
  })

  it('refuse a role that does not exist, and a person without a name', async () => {
    const { admin } = open()
    // Of a caller without types.
    const asked = (who: unknown) => admin.operations(by(who as Person))
    await expect(asked({ name: 'x', role: 'admin' })).rejects.toThrow('must be viewer, operator, approver')
    for (const name of [' ', 'a\0', 'a\uD800'])
      await expect(asked({ name, role: 'viewer' })).rejects.toThrow('needs a name')
  })
})

describe('operations', () => {
  it('have the number of outcomes that are unknown, but not for a person who sees some of them only', async () => {
    const { admin, unknownRow } = open()
    await unknownRow('a')
    await unknownRow('b', 'other')
    expect(await admin.operations(by(vic))).toMatchObject({ value: [{ name: 'pay', unknown: 2 }] })
    const limited = { ...vic, limitScopes: ['acme'] }
    expect(await admin.operations(by(limited))).toMatchObject({ value: [{ name: 'pay', unknown: undefined }] })
  })
})

describe('a person with limitScopes', () => {
  const limited: Person = { ...bea, limitScopes: ['acme'] }

  it('finds rows of other scopes nowhere, and cannot act on them', async () => {
    const { admin, unknownRow, on, entries } = open()
    const hidden = await unknownRow('k', 'other')
    const seen = await unknownRow('k')
    expect(await admin.key(by(limited), hidden)).toEqual({ kind: 'not-found' })
    expect(await admin.timeline(by(limited), hidden)).toEqual({ kind: 'not-found' })
    expect(await admin.take(by(limited), await on(hidden))).toEqual({ kind: 'not-found' })
    expect(await admin.find(by(limited), { scope: 'other', operation: 'pay', key: 'k' })).toEqual({
      kind: 'found',
      value: [],
    })
    expect(await admin.find(by(limited), { reference: 'ch_k' })).toMatchObject({ value: [{ id: seen }] })
    expect(await admin.work(by(limited), { kind: 'unknown' })).toMatchObject({ value: { items: [{ id: seen }] } })
    expect(await admin.overview(by(limited))).toMatchObject({ value: { unknown: { count: 1 } } })
    expect((await entries())[0]).toMatchObject({ by: 'bea', act: 'take', refused: 'not-found' })
  })

  it('counts what they see, and nothing of other scopes', async () => {
    const { admin, unknownRow } = open()
    await unknownRow('seen')
    for (const key of ['a', 'b', 'c']) await unknownRow(key, 'other')
    const several: Person = { ...limited, limitScopes: ['acme', 'third'] }
    for (const who of [limited, several])
      expect(await admin.groups(by(who), 'unknown')).toMatchObject({
        kind: 'found',
        value: { groups: [{ operation: 'pay', count: 1 }], partial: false },
      })
    expect(await admin.groups(by(bea), 'unknown')).toMatchObject({ value: { groups: [{ count: 4 }] } })
  })

  it('finds every row that they see on some page, however many others lie between', async () => {
    const { admin, clock, unknownRow } = open()
    const seen: string[] = []
    for (let n = 0; n < 12; n += 1) {
      const scope = ['acme', 'other', 'third'][n % 3]
      const id = await unknownRow(`k${n}`, scope)
      clock.advance(1_000)
      if (scope !== 'other') seen.push(id)
    }
    const several: Person = { ...limited, limitScopes: ['acme', 'third'] }
    const found: string[] = []
    let after: string | undefined
    do {
      const page = await admin.work(by(several), {
        kind: 'unknown',
        limit: 3,
        ...(after === undefined ? {} : { after }),
      })
      if (page.kind !== 'found') throw new Error(page.kind)
      found.push(...page.value.items.map(({ id }) => id))
      after = page.value.next
    } while (after !== undefined)
    expect(found).toEqual(seen)
  })

  it('does not see, approve or read about proposals and acts of other scopes', async () => {
    const { admin, clock, unknownRow, on } = open()
    const hidden = await unknownRow('k', 'other')
    clock.advance(quarantineMs + 1)
    const made = await admin.settle(by(ann), { ...(await on(hidden)), ...denial })
    if (made.kind !== 'second-person-needed') throw new Error(made.kind)
    expect(await admin.proposals(by(limited))).toEqual({ kind: 'found', value: [] })
    expect(
      await admin.approve(by({ ...limited, name: 'dora' }), { proposalId: made.proposal.proposalId, reason }),
    ).toEqual({ kind: 'not-found' })
    expect(await admin.audit(by(limited))).toMatchObject({ value: { items: [] } })
  })
})

describe('a row', () => {
  it('that another operator has settled has moved, and is shown as it is now', async () => {
    const { admin, unknownRow, on, entries } = open()
    const id = await unknownRow('k')
    const given = {
      ...(await on(id)),
      answer: 'happened',
      evidence,
      response: { status: 201, json: { id: 'ch_1' } },
    } as const
    expect(await admin.settle(by(ann), given)).toMatchObject({
      kind: 'done',
      row: { state: 'completed' },
      repeated: false,
    })
    expect(await admin.settle(by(bea), given)).toMatchObject({ kind: 'row-moved', row: { id, state: 'completed' } })
    expect((await entries()).map(({ by: who, act, refused, to }) => [who, act, refused, to])).toEqual([
      ['bea', 'settle.happened', 'row-moved', undefined],
      ['ann', 'settle', undefined, 'completed'],
    ])
  })

  it('is settled once by a request that is repeated', async () => {
    const { admin, unknownRow, on, run } = open()
    const id = await unknownRow('k')
    const given = { ...(await on(id)), answer: 'happened', evidence, response: { status: 200, json: 'paid' } } as const
    const first = await admin.settle(by(ann, 'r1'), given)
    expect(await admin.settle(by(ann, 'r1'), given)).toEqual({ ...first, repeated: true })
    expect(await run('acme', 'k', async () => 'twice')).toBe('paid')
  })

  it('is not settled as "did not happen" inside the quarantine, unless the provider has denied it', async () => {
    const { admin, clock, unknownRow, on, row } = open({ approvals: { 'settle.did_not_happen': 'never' } })
    const id = await unknownRow('k')
    clock.advance(quarantineMs - 1_000)
    expect(await admin.settle(by(bea), { ...(await on(id)), ...denial })).toMatchObject({
      kind: 'quarantine-not-over',
      leftMs: 1_000,
    })
    expect(await row(id)).toMatchObject({ state: 'unknown', quarantineLeftMs: 1_000, evidence: 0 })
    const denied = await unknownRow('denied')
    const explicit = {
      ...(await on(denied)),
      answer: 'did_not_happen',
      evidence: { kind: 'denial', reference: 'req_9' },
    } as const
    expect(await admin.settle(by(bea), explicit)).toMatchObject({ kind: 'done', row: { state: 'failed_retryable' } })
    clock.advance(2_000)
    expect(await admin.settle(by(bea), { ...(await on(id)), ...denial })).toMatchObject({
      kind: 'done',
      row: { state: 'failed_retryable' },
    })
  })

  it('takes the quarantine that the reconcilers of the fleet report', async () => {
    const { admin, store, clock, unknownRow, on } = open({ approvals: { 'settle.did_not_happen': 'never' } })
    const beat = { process: 'w', loop: 'reconciler', turns: 1, failures: 0, lastTurnAgoMs: 0, lastError: undefined }
    await store.admin.beat([{ ...beat, detail: JSON.stringify({ quarantineMs: { pay: 30 * minuteMs } }) }])
    const id = await unknownRow('k')
    clock.advance(quarantineMs + 1)
    expect(await admin.settle(by(bea), { ...(await on(id)), ...denial })).toMatchObject({ kind: 'quarantine-not-over' })
  })

  it('needs evidence, a reason and the version that was read', async () => {
    const { admin, unknownRow, on } = open()
    const id = await unknownRow('k')
    const given = await on(id)
    const settled = { ...given, answer: 'happened', evidence } as const
    const { evidence: _evidence, ...bare } = settled
    for (const wrong of [bare, { ...settled, reason: ' ' }, { ...settled, version: 'x' }])
      expect(await admin.settle(by(bea), wrong)).toMatchObject({ kind: 'invalid' })
  })

  it('shows no body, which is revealed by an act that the audit has', async () => {
    const { admin, run, latchkey, on, row, entries } = open({
      redact: (_operation, _what, body) => Buffer.from(Buffer.from(body).toString().replace('4242', '****')),
    })
    await run('acme', 'k', async () => ({ card: '4242' }))
    const id = latchkey.identify({ scope: 'acme', operation: 'pay', key: 'k' })
    expect(JSON.stringify(await row(id))).not.toContain('4242')
    const shown = await admin.reveal(by(bea), { ...(await on(id)), what: 'outcome' })
    expect(shown.kind === 'revealed' && Buffer.from(shown.body).toString()).toBe('{"card":"****"}')
    expect((await entries())[0]).toMatchObject({ by: 'bea', act: 'reveal', evidence: 'outcome', reason })
  })

  it('is in the audit each time its body is shown, also under a request id that has shown another one', async () => {
    const { admin, run, latchkey, on, entries } = open()
    const ids = ['a', 'b'].map(key => latchkey.identify({ scope: 'acme', operation: 'pay', key }))
    for (const key of ['a', 'b']) await run('acme', key, async () => key)
    for (const id of [...ids, ...ids])
      expect((await admin.reveal(by(bea, 'r1'), { ...(await on(id)), what: 'outcome' })).kind).toBe('revealed')
    expect((await entries()).map(({ act, id }) => [act, id])).toEqual(
      [...ids, ...ids].toReversed().map(id => ['reveal', id]),
    )
  })

  it('is not acted on under a request id that has done another act, or an act on another row', async () => {
    const { admin, unknownRow, on, row, entries } = open()
    const [id, other] = [await unknownRow('a'), await unknownRow('b')]
    expect(await admin.take(by(ann, 'r1'), await on(id))).toMatchObject({ kind: 'done' })
    const why = expect.stringContaining('request id')
    expect(await admin.take(by(ann, 'r1'), await on(other))).toMatchObject({ kind: 'invalid', why })
    expect(await admin.park(by(ann, 'r1'), await on(id))).toMatchObject({ kind: 'invalid', why })
    expect(await row(other)).toMatchObject({ owner: undefined })
    expect(await row(id)).toMatchObject({ parked: false })
    expect((await entries()).map(({ refused }) => refused)).toEqual(['invalid', 'invalid', undefined])
  })

  it('is found by its key and by its reference, and tells its story', async () => {
    const { admin, unknownRow, on } = open()
    const id = await unknownRow('k')
    await admin.take(by(ann), await on(id))
    for (const what of [{ scope: 'acme', operation: 'pay', key: 'k' }, { reference: 'ch_k' }, { id }])
      expect(await admin.find(by(vic), what)).toMatchObject({
        kind: 'found',
        value: [{ id, state: 'unknown', owner: 'ann' }],
      })
    const told = await admin.timeline(by(vic), id)
    expect(told.kind === 'found' && told.value.map(({ kind }) => kind)).toEqual([
      'created',
      'reference',
      'unknown',
      'act',
      'expires',
    ])
  })
})

describe('a second person', () => {
  async function proposed() {
    const opened = open()
    const id = await opened.unknownRow('k')
    opened.clock.advance(quarantineMs + 1)
    const made = await opened.admin.settle(by(bea), { ...(await opened.on(id)), ...denial })
    if (made.kind !== 'second-person-needed') throw new Error(made.kind)
    return { ...opened, id, proposalId: made.proposal.proposalId }
  }

  it('approves what another has proposed, and both names are in the audit with the evidence', async () => {
    const { admin, id, proposalId, row, entries } = await proposed()
    expect(await row(id)).toMatchObject({ state: 'unknown' })
    const done = await admin.approve(by(carl), { proposalId, reason: 'seen it' })
    expect(done).toMatchObject({ kind: 'done', row: { state: 'failed_retryable', evidence: 1 } })
    const [settled, made] = await entries()
    expect(settled).toMatchObject({
      by: 'carl',
      act: 'settle',
      evidence: 'ticket:4711',
      from: 'unknown',
      to: 'failed_retryable',
    })
    expect(settled?.reason).toBe('seen it (proposed by bea: ticket 7)')
    expect(made).toMatchObject({ by: 'bea', act: 'propose', evidence: 'ticket:4711' })
    expect(await admin.approve(by(carl), { proposalId, reason })).toEqual({
      kind: 'proposal-closed',
      state: 'approved',
    })
  })

  it('is never the one who proposed it', async () => {
    const { admin, id, proposalId, row, entries } = await proposed()
    expect(await admin.approve(by(bea), { proposalId, reason })).toEqual({ kind: 'own-proposal' })
    for (const name of ['Bea', ' bea', 'ｂｅａ'])
      expect(await admin.approve(by({ ...bea, name }), { proposalId, reason }), name).toEqual({ kind: 'own-proposal' })
    expect(await admin.approve(by(bea), { proposalId, reason })).toEqual({ kind: 'own-proposal' })
    expect((await entries())[0]).toMatchObject({ by: 'bea', act: 'approve', refused: 'own-proposal' })
    expect(await row(id)).toMatchObject({ state: 'unknown' })
  })

  it('needs the right to approve, and the right of the act', async () => {
    const { admin, proposalId } = await proposed()
    expect(await admin.approve(by(ann), { proposalId, reason })).toEqual({ kind: 'not-permitted', right: 'approve' })
    const half: Person = { name: 'half', role: ['view', 'approve'] }
    expect(await admin.approve(by(half), { proposalId, reason })).toEqual({
      kind: 'not-permitted',
      right: 'settle.did_not_happen',
    })
  })

  it('finds a proposal void when its row has moved', async () => {
    const { admin, id, proposalId, on } = await proposed()
    await admin.park(by(ann), await on(id))
    expect(await admin.approve(by(carl), { proposalId, reason })).toEqual({ kind: 'proposal-closed', state: 'void' })
    expect(await admin.proposals(by(carl))).toMatchObject({ value: [{ proposalId, state: 'void', decidedBy: 'carl' }] })
  })

  it('finds it expired after a day', async () => {
    const { admin, clock, proposalId } = await proposed()
    clock.advance(24 * 60 * minuteMs)
    expect(await admin.approve(by(carl), { proposalId, reason })).toEqual({ kind: 'proposal-closed', state: 'expired' })
  })

  it('may reveal and note before deciding, which voids nothing', async () => {
    const { admin, id, proposalId, on } = await proposed()
    await admin.note(by(carl), await on(id))
    expect(await admin.approve(by(carl), { proposalId, reason })).toMatchObject({ kind: 'done' })
  })

  it('rejects, and nothing is done', async () => {
    const { admin, id, proposalId, row, entries } = await proposed()
    expect(await admin.reject(by(carl), { proposalId, reason: 'it is there' })).toMatchObject({ kind: 'done' })
    expect(await row(id)).toMatchObject({ state: 'unknown' })
    expect((await entries())[0]).toMatchObject({ by: 'carl', act: 'reject', reason: 'it is there' })
  })

  it('is needed for an operator, who proposes what only an approver may do', async () => {
    const { admin, clock, unknownRow, on } = open({ approvals: { 'settle.did_not_happen': 'never' } })
    const id = await unknownRow('k')
    clock.advance(quarantineMs + 1)
    expect(await admin.settle(by(ann), { ...(await on(id)), ...denial })).toMatchObject({
      kind: 'second-person-needed',
      proposal: { by: 'ann' },
    })
  })

  it('is needed by the row, where the options say so', async () => {
    const { admin, clock, unknownRow, on } = open({
      approvals: { 'settle.did_not_happen': ({ scope }) => scope === 'big' },
    })
    const [small, big] = [await unknownRow('k'), await unknownRow('k', 'big')]
    clock.advance(quarantineMs + 1)
    expect(await admin.settle(by(bea), { ...(await on(small)), ...denial })).toMatchObject({ kind: 'done' })
    expect(await admin.settle(by(bea), { ...(await on(big)), ...denial })).toMatchObject({
      kind: 'second-person-needed',
    })
  })

  it('is needed to forget a row by default, and the row goes with the approval', async () => {
    const { admin, run, latchkey, on } = open()
    await run('acme', 'k', async () => 'paid')
    const id = latchkey.identify({ scope: 'acme', operation: 'pay', key: 'k' })
    expect(await admin.forget(by(bea), { ...(await on(id)), confirm: 'nope' })).toMatchObject({ kind: 'invalid' })
    const made = await admin.forget(by(bea), { ...(await on(id)), confirm: id.slice(0, 4) })
    if (made.kind !== 'second-person-needed') throw new Error(made.kind)
    const { proposalId } = made.proposal
    expect(await admin.approve(by(carl), { proposalId, reason })).toMatchObject({ kind: 'done', row: undefined })
    expect(await latchkey.find({ id })).toEqual([])
  })
})

describe('a parked message', () => {
  const skipped = (position: string) => ({ position, reason })

  it('is skipped by an approver, once, and the audit names what its consumer misses', async () => {
    const { admin, store, entries } = open()
    const position = await parkOne(store)
    const given = skipped(position)
    const first = await admin.skipOutbox(by(bea, 'one'), given)
    expect(first).toMatchObject({ kind: 'done', repeated: false })
    expect(await admin.skipOutbox(by(bea, 'one'), given)).toEqual({ ...first, repeated: true })
    expect(await admin.skipOutbox(by(carl), given)).toEqual({ kind: 'not-found' })
    expect(await admin.redriveOutbox(by(carl), given)).toEqual({ kind: 'not-found' })
    expect(await store.outbox?.parked({ limit: 10 })).toEqual([])
    const done = (await entries()).filter(({ act, refused }) => act === 'outbox.skip' && refused === undefined)
    expect(done).toMatchObject([
      { by: 'bea', reason, source: 'cli', detail: `message ${position} to orders of aggregate a, dedup id a1` },
    ])
    expect(done[0]?.auditId).toBe(first.kind === 'done' ? first.auditId : '')
  })

  it('is not skipped by an operator, nor without a reason, nor by who sees some scopes only', async () => {
    const { admin, store, entries } = open()
    const given = skipped(await parkOne(store))
    expect(await admin.skipOutbox(by(ann), given)).toEqual({ kind: 'not-permitted', right: 'skip' })
    expect(await admin.skipOutbox(by(bea), { ...given, reason: ' ' })).toMatchObject({ kind: 'invalid' })
    const limited: Person = { name: 'lim', role: 'approver', limitScopes: ['acme'] }
    expect(await admin.skipOutbox(by(limited), given)).toEqual({ kind: 'not-found' })
    expect(await store.outbox?.parked({ limit: 10 })).toHaveLength(1)
    expect((await entries()).map(({ by: who, act, refused }) => [who, act, refused])).toEqual([
      ['lim', 'outbox.skip', 'not-found'],
      ['ann', 'outbox.skip', 'not-permitted'],
    ])
  })
})

it('lets a person act so often in a minute, and another all the same', async () => {
  const { admin, clock, unknownRow, on } = open({ actsPerMinute: 2 })
  const id = await unknownRow('k')
  for (let acts = 0; acts < 2; acts += 1)
    expect(await admin.note(by(ann), await on(id))).toMatchObject({ kind: 'done' })
  expect(await admin.note(by(ann), await on(id))).toMatchObject({ kind: 'too-many-acts' })
  expect(await admin.note(by(bea), await on(id))).toMatchObject({ kind: 'done' })
  clock.advance(minuteMs)
  expect(await admin.note(by(ann), await on(id))).toMatchObject({ kind: 'done' })
})

it('resumes phased work with the value of the effect that an operator has found', async () => {
  const { admin, latchkey, on, row } = open()
  const ship = latchkey.phased('ship', { version: 1, steps: 'effects' }, async (x, _input: number) => {
    const parcel = await x.effect('send', { timeoutMs: 1_000 }, async (): Promise<{ id: string }> =>
      Promise.reject(new Error('read timeout')),
    )
    return { status: 200, headers: [], body: Buffer.from(parcel.id), version: 1 }
  })
  await ship.run({ scope: 'acme', key: 'k', input: 1 }).catch(() => {})
  const id = latchkey.identify({ scope: 'acme', operation: 'ship', key: 'k' })
  expect(await row(id)).toMatchObject({ state: 'unknown', effect: 'send' })
  const happened = {
    answer: 'happened',
    evidence: { kind: 'reference', reference: 'p_1', value: { id: 'p_1' } },
  } as const
  expect(await admin.settle(by(ann), { ...(await on(id)), ...happened, effect: 'charge' })).toMatchObject({
    kind: 'wrong-verdict',
    needs: 'value',
    effect: 'send',
  })
  expect(await admin.settle(by(ann), { ...(await on(id)), ...happened, effect: 'send' })).toMatchObject({
    kind: 'done',
    row: { state: 'pending' },
  })
})
