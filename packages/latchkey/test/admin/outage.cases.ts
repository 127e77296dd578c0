/** A provider was away for ten minutes, and 400 payments are unknown: look-ups, its export, a second person, and evidence for every row. */
import { afterEach, expect, it } from 'vitest'
import { createAdmin, type Actor, type Admin, type Person } from '../../src/admin/index.ts'
import { createLatchkey, json, silentTelemetry, type Store } from '../../src/index.ts'
import { createReconciler } from '../../src/reconcile/index.ts'
import { createWorkers, type Workers } from '../../src/workers/index.ts'

const rows = 400
/** What the provider finds by itself, and what only its export shows. */
const lookedUp = 380
const denied = [390, 391]
/** A dozen statements for each row, one after the other, on a machine that does other things as well. */
const storyMsMax = 180_000

const ann: Person = { name: 'ann', role: 'operator' }
const bea: Person = { name: 'bea', role: 'approver' }
const by = (who: Person): Actor => ({ who, source: 'cli' })
const reason = 'outage of the provider'

export interface OpenStore {
  readonly store: Store
  close(): Promise<void>
}

type Ends = (() => Promise<unknown>)[]
type Scene = Awaited<ReturnType<typeof openScene>>

async function openScene(open: () => Promise<OpenStore>, ends: Ends) {
  const { store, close } = await open()
  const latchkey = createLatchkey({ store, scope: () => 'acme', maintenance: false, telemetry: silentTelemetry })
  ends.push(close, () => latchkey.close())
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  const fail = async (n: number) => {
    const request = { scope: 'acme', key: `k${n}`, input: n }
    const charged = pay.run(request, async x => {
      await x.reference(`ch_${n}`)
      throw new Error('read timeout')
    })
    await charged.catch(() => {})
  }
  for (let n = 0; n < rows; n += 20) await Promise.all(Array.from({ length: 20 }, (_, more) => fail(n + more)))
  const idOf = (n: number) => latchkey.identify({ scope: 'acme', operation: 'pay', key: `k${n}` })
  const found = new Set(Array.from({ length: lookedUp }, (_, n) => idOf(n)))
  const reconciler = createReconciler(latchkey)
  reconciler.register(pay, {
    lookup: ({ id }) => (found.has(id) ? { kind: 'happened', outcome: json(201, {}) } : { kind: 'still-unknown' }),
  })
  const workers: Workers = createWorkers(latchkey, {
    only: ['reconciler'],
    reconciler: { use: reconciler, everyMs: 20, concurrency: 8 },
  })
  ends.push(() => workers.stop())
  const admin = createAdmin({ latchkey, quarantineMs: () => 1 })
  return { admin, latchkey, workers, idOf }
}

const unknowns = async (admin: Admin): Promise<number> => {
  const seen = await admin.overview(by(ann))
  return seen.kind === 'found' ? seen.value.unknown.count : -1
}

export function outageCases(open: () => Promise<OpenStore>): void {
  const ends: Ends = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  it(
    'settles 400 unknowns by look-ups, an export and a second person, each with its evidence',
    async () => {
      const scene = await openScene(open, ends)
      await lookUpAll(scene)
      await importExport(scene)
      await approveAll(scene)
      await expectEvidence(scene)
    },
    storyMsMax,
  )

  it('imports a plan once, however often it is started, and continues where it stopped', async () =>
    importTwice(await openScene(open, ends)))
}

async function lookUpAll({ admin, workers }: Scene): Promise<void> {
  expect(await unknowns(admin)).toBe(rows)
  const groups = await admin.groups(by(ann), 'unknown')
  expect(groups).toMatchObject({ value: { groups: [{ operation: 'pay', count: rows }], partial: false } })

  const planned = await admin.planBulk(by(ann), { act: 'look_up', reason, filter: { kind: 'unknown' } })
  if (planned.kind !== 'planned') throw new Error(planned.kind)
  expect(planned.plan).toMatchObject({ matched: rows, excluded: {}, state: 'planned' })
  expect(await unknowns(admin)).toBe(rows)
  expect(await admin.startBulk(by(ann), { bulkId: planned.plan.bulkId })).toMatchObject({
    plan: { state: 'done', finished: rows },
  })
  workers.start()
  await expect.poll(() => unknowns(admin), { timeout: 60_000, interval: 200 }).toBe(rows - lookedUp)
  const shown = await admin.workers(by(ann))
  expect(shown).toMatchObject({ value: [{ loop: 'reconciler', detail: expect.stringContaining('quarantineMs') }] })
  await workers.stop()
}

async function importExport({ admin }: Scene): Promise<void> {
  const lines = Array.from({ length: rows }, (_, n) => `ch_${n},${denied.includes(n) ? 'absent' : 'succeeded'}`)
  const file = {
    csv: `reference,status\r\n${lines.join('\r\n')}\r\n`,
    match: { column: 'reference', by: 'reference' },
    status: { column: 'status', happened: ['succeeded'], didNotHappen: ['absent'] },
  } as const
  const imported = await admin.planBulk(by(ann), { act: 'import_evidence', reason, file })
  if (imported.kind !== 'planned') throw new Error(imported.kind)
  expect(imported.plan).toMatchObject({ matched: rows - lookedUp, excluded: { 'row is completed': lookedUp } })
  const results: (string | undefined)[] = []
  await admin.startBulk(by(ann), { bulkId: imported.plan.bulkId, onRow: ({ result }) => results.push(result) })
  expect(results.filter(result => result === 'done')).toHaveLength(rows - lookedUp - denied.length)
  expect(results.filter(result => result === 'second-person-needed')).toHaveLength(denied.length)
}

async function approveAll({ admin, idOf }: Scene): Promise<void> {
  const proposals = await admin.proposals(by(bea))
  if (proposals.kind !== 'found') throw new Error(proposals.kind)
  expect(new Set(proposals.value.map(({ id }) => id))).toEqual(new Set(denied.map(idOf)))
  for (const { by: who, state } of proposals.value) expect([who, state]).toEqual(['ann', 'open'])
  for (const { proposalId } of proposals.value) {
    expect(await admin.approve(by({ ...bea, name: 'ann' }), { proposalId, reason })).toEqual({ kind: 'own-proposal' })
    expect(await admin.approve(by(bea), { proposalId, reason: 'seen in the export' })).toMatchObject({ kind: 'done' })
  }
  expect(await unknowns(admin)).toBe(0)
}

async function expectEvidence({ admin, latchkey, idOf }: Scene): Promise<void> {
  for (let n = 0; n < rows; n += 1) {
    const { record, evidence } = await latchkey.inspect({ id: idOf(n) })
    const isDenied = denied.includes(n)
    expect(record?.state, `row ${n}`).toBe(isDenied ? 'failed_retryable' : 'completed')
    expect(
      evidence.filter(({ applied }) => applied).map(({ source, verdict }) => [source, verdict]),
      `row ${n}`,
    ).toEqual([[n < lookedUp ? 'look-up' : 'operator', isDenied ? 'never-happened' : 'happened']])
  }
  const decided = await admin.audit(by(bea), { id: idOf(denied[0] ?? 0) })
  expect(
    decided.kind === 'found' && decided.value.items.map(({ by: who, act, evidence }) => [who, act, evidence]),
  ).toEqual([
    ['bea', 'settle', 'export:ch_390'],
    ['ann', 'approve', undefined],
    ['ann', 'propose', 'export:ch_390'],
    ['ann', 'look-up', undefined],
  ])
}

async function importTwice({ admin, idOf }: Scene): Promise<void> {
  const csv = `id,status\n${Array.from({ length: 10 }, (_, n) => `${idOf(n)},succeeded`).join('\n')}\n${idOf(0)},succeeded\nnobody,succeeded\n${idOf(11)},pending`
  const file = {
    csv,
    match: { column: 'id', by: 'id' },
    status: { column: 'status', happened: ['succeeded'], didNotHappen: [] },
  } as const
  const planned = await admin.planBulk(by(ann), { act: 'import_evidence', reason, file })
  if (planned.kind !== 'planned') throw new Error(planned.kind)
  expect(planned.plan).toMatchObject({
    matched: 10,
    excluded: { 'named twice': 1, 'not found': 1, 'status pending': 1 },
  })
  const { bulkId } = planned.plan
  const stop = new AbortController()
  const first: string[] = []
  const onRow = ({ id }: { readonly id: string }) => {
    first.push(id)
    if (first.length === 3) stop.abort()
  }
  await admin.startBulk(by(ann), { bulkId, signal: stop.signal, onRow })
  expect(await admin.bulk(by(ann), bulkId)).toMatchObject({ value: { state: 'running', finished: 3 } })
  await admin.startBulk(by(ann), { bulkId, onRow: ({ id }) => first.push(id) })
  expect(first).toEqual(Array.from({ length: 10 }, (_, n) => idOf(n)))
  expect(await admin.startBulk(by(ann), { bulkId })).toMatchObject({ kind: 'invalid', why: 'the plan is done' })
  expect(await unknowns(admin)).toBe(rows - 10)
}
