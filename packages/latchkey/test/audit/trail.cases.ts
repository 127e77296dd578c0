/** What an application that asks for a trail gets, on any store that has one. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type AuditLine, type AuditOptions, json, notExecuted, outcomeUnknown, type Store } from 'latchkey'
import { createWorkers } from '../../src/workers/index.ts'
import { eventually, latchkeyOn, recordingTelemetry, type TestLatchkey } from '../engine/fixture.ts'
import { underA } from '../sealed/keys.ts'

const act = { by: 'on-call', reason: 'the provider shows it' }
const scope = 'acme'
const request = (key: string, input: unknown = { amount: 1 }) => ({ scope, key, input })

export interface Opened {
  readonly store: Store
  close(): Promise<void>
}

interface Scene {
  open(audit?: AuditOptions, options?: Parameters<typeof latchkeyOn>[1]): TestLatchkey
  readonly telemetry: ReturnType<typeof recordingTelemetry>
}

export function trailCases(openDatabase: () => Promise<Opened>): void {
  const opened: TestLatchkey[] = []
  let database: Opened
  let telemetry: ReturnType<typeof recordingTelemetry>
  beforeEach(async () => {
    database = await openDatabase()
    telemetry = recordingTelemetry()
  })
  afterEach(async () => {
    for (const latchkey of opened.splice(0)) await latchkey.close()
    await database.close()
  })
  const scene: Scene = {
    open(audit, options = {}) {
      const latchkey = latchkeyOn(database.store, { telemetry, ...(audit && { audit }), ...options })
      opened.push(latchkey)
      return latchkey
    },
    get telemetry() {
      return telemetry
    },
  }
  itRecordsEnds(scene)
  itRecordsMisuse(scene)
  itHandsOver(scene)
}

/** In one word each: what the trail says about an operation. */
async function told(latchkey: TestLatchkey, operation?: string): Promise<readonly string[]> {
  const { lines } = await latchkey.auditRecords({ limit: 1_000 })
  return lines
    .filter(line => operation === undefined || line.operation === operation)
    .map(({ what, status }) => (status === undefined ? what : `${what} ${status}`))
}

function itRecordsEnds({ open }: Scene): void {
  it('has a line for each end of guarded work, and none for a replay', async () => {
    const latchkey = open({ records: 'changes' })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    await pay.run(request('paid'), async () => ({ secret: 'marker' }))
    await pay.run(request('paid'), async () => 'again')
    const refused = pay.run(request('refused'), async () => {
      throw notExecuted(new Error('not yet'))
    })
    await expect(refused).rejects.toThrow()
    const lost = pay.run(request('lost'), async () => {
      throw outcomeUnknown(new Error('no answer'))
    })
    await expect(lost).rejects.toThrow()
    expect(await told(latchkey)).toEqual(['completed 200', 'failed', 'unknown'])
    await latchkey.settle({ scope, operation: 'pay', key: 'lost' }, { kind: 'happened', status: 201, json: 1 }, act)
    const { lines } = await latchkey.auditRecords({ scope })
    expect(lines.at(-1)).toMatchObject({ what: 'completed', status: 201, operation: 'pay', scope, fence: 1 })
    expect(lines.at(-1)?.id).toBe(latchkey.identify({ scope, operation: 'pay', key: 'lost' }))
    expect(JSON.stringify(lines)).not.toMatch(/marker|paid|"lost"/)
  })

  it('has a line for atomic work that committed, and none for what was rolled back', async () => {
    const latchkey = open({ records: 'changes' })
    const order = latchkey.atomic('order')
    await order.run(request('a'), async () => 'ordered')
    await order.run(request('a'), async () => 'again')
    const failed = order.run(request('b'), async () => {
      throw new Error('rolled back')
    })
    await expect(failed).rejects.toThrow('rolled back')
    await order.run(request('large'), async () => 'x'.repeat(10_000))
    expect(await told(latchkey)).toEqual(['completed 200', 'completed 200'])
  })

  it('has a line for phased and deferred work when it ends, whoever ends it', async () => {
    const latchkey = open({ records: 'changes' })
    const ship = latchkey.phased<{ to: string }>('ship', { version: 1 }, async (x, { to }) => {
      await x.phase('pack', async () => 'packed')
      await x.effect('label', { timeoutMs: 10_000 }, async () => 'label')
      return json(201, { to })
    })
    await ship.run(request('parcel', { to: 'here' }) as never)
    const later = latchkey.deferred('export', { deadlineMs: 3_600_000 }, async () => json(202, 'done'))
    await later.run(request('export') as never)
    expect(await told(latchkey)).toEqual(['completed 201'])
    const workers = createWorkers(latchkey, { only: ['resumer'], resumer: { everyMs: 20 } })
    workers.start()
    await eventually(async () => (await told(latchkey, 'export')).length > 0)
    await workers.stop()
    expect(await told(latchkey, 'export')).toEqual(['completed 202'])
  })

  it('has nothing of a Latchkey without audit, which can read it all the same', async () => {
    const silent = open()
    await silent.guarded('pay', { onFailure: 'hold' }).run(request('silent'), async () => 1)
    expect(await told(silent)).toEqual([])
    await open({ records: 'changes' })
      .guarded('pay', { onFailure: 'hold' })
      .run(request('told'), async () => 1)
    expect(await told(silent)).toEqual(['completed 200'])
  })

  it('tells who, when and how also where answers are encrypted', async () => {
    const latchkey = open({ records: 'changes' }, { encryption: underA })
    await latchkey.guarded('pay', { onFailure: 'hold' }).run(request('small'), async () => 'small')
    await latchkey.atomic('order').run(request('large'), async () => 'x'.repeat(10_000))
    expect(await told(latchkey)).toEqual(['completed 200', 'completed 200'])
  })

  it('reads in pages, from an instant on and by row', async () => {
    const latchkey = open({ records: 'changes' })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    for (const key of ['a', 'b', 'c']) await pay.run(request(key), async () => key)
    const first = await latchkey.auditRecords({ limit: 2 })
    expect(first.lines).toHaveLength(2)
    const second = await latchkey.auditRecords({ limit: 2, after: first.next ?? '' })
    expect([second.lines.length, second.next]).toEqual([1, undefined])
    const [third] = second.lines
    expect((await latchkey.auditRecords({ id: third?.id ?? '' })).lines).toEqual([third])
    expect((await latchkey.auditRecords({ fromMs: third?.atMs ?? 0 })).lines.at(-1)).toEqual(third)
    expect((await latchkey.auditRecords({ fromMs: (third?.atMs ?? 0) + 60_000 })).lines).toEqual([])
    await expect(latchkey.auditRecords({ after: 'c' })).rejects.toThrow('after must be the next of the page before')
  })
}

function itRecordsMisuse({ open }: Scene): void {
  it('has a line for a key that was reused, where all is recorded', async () => {
    for (const [records, expected] of [
      ['changes', ['completed 200']],
      ['all', ['completed 200', 'completed 200', 'misuse']],
    ] as const) {
      const latchkey = open({ records })
      const pay = latchkey.guarded('pay', { onFailure: 'hold' })
      await pay.run(request(records), async () => 1)
      const misuse = pay.run(request(records, { amount: 2 }), async () => 2)
      await expect(misuse).rejects.toMatchObject({ code: 'key-reused' })
      expect(await told(latchkey)).toEqual(expected)
    }
  })

  it('has a line for a key that was reused for atomic work', async () => {
    const latchkey = open({ records: 'all' })
    const order = latchkey.atomic('order')
    await order.run(request('a'), async () => 1)
    await expect(order.run(request('a', 'other'), async () => 2)).rejects.toMatchObject({ code: 'key-reused' })
    const { lines } = await latchkey.auditRecords()
    expect(lines.map(({ what }) => what)).toEqual(['completed', 'misuse'])
    expect(lines[1]).toMatchObject({ id: lines[0]?.id, scope, operation: 'order', fence: 1 })
    expect(lines[1]?.fingerprint).not.toEqual(lines[0]?.fingerprint)
  })

  it('has no more lines of misuse than the limit of mismatches lets through', async () => {
    const latchkey = open({ records: 'all' }, { limits: { mismatchesPerMinute: 2 } })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    await pay.run(request('a'), async () => 1)
    for (let n = 0; n < 6; n += 1) await pay.run(request('a', n), async () => 2).catch(() => undefined)
    expect(await told(latchkey)).toEqual(['completed 200', 'misuse', 'misuse'])
  })
}

function itHandsOver(scene: Scene): void {
  it('hands the lines to the sink in order, again after it rejected, and keeps them until it has them', async () => {
    const got: (readonly AuditLine[])[] = []
    let refusals = 2
    const sink = async (lines: readonly AuditLine[]) => {
      if (refusals-- > 0) throw new Error('the archive is away')
      got.push(lines)
    }
    const latchkey = scene.open({ records: 'changes', sink })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    const ids: string[] = []
    for (let n = 0; n < 7; n += 1) {
      await pay.run(request(`key ${n}`), async () => n)
      ids.push(latchkey.identify({ scope, operation: 'pay', key: `key ${n}` }))
    }
    const workers = createWorkers(latchkey, { only: ['auditor'], auditor: { everyMs: 20, batch: 3 } })
    workers.start()
    await eventually(() => workers.health().auditor?.failures === 1)
    expect(await told(latchkey)).toHaveLength(7)
    await eventually(async () => (await told(latchkey)).length === 0)
    await workers.stop()
    expect(got.flat().map(({ id }) => id)).toEqual(ids)
    expect(got.map(lines => lines.length)).toEqual([3, 3, 1])
    expect(scene.telemetry.told.filter(one => JSON.stringify(one).startsWith('["a turn of the auditor'))).toHaveLength(
      2,
    )
  })

  it('leaves lines to the sink that are long past the retention of others', async () => {
    const latchkey = scene.open({ records: 'changes', sink: () => Promise.reject(new Error('away')) })
    await latchkey.guarded('pay', { onFailure: 'hold' }).run(request('a'), async () => 1)
    const workers = createWorkers(latchkey, { only: ['auditor'], auditor: { everyMs: 10 } })
    workers.start()
    await eventually(() => (workers.health().auditor?.failures ?? 0) >= 2)
    await workers.stop()
    expect(await told(latchkey)).toEqual(['completed 200'])
  })

  it('leaves young lines alone while its workers run', async () => {
    const latchkey = scene.open({ records: 'changes' })
    await latchkey.guarded('pay', { onFailure: 'hold' }).run(request('a'), async () => 1)
    const workers = createWorkers(latchkey, { auditor: { everyMs: 10 }, reaper: { everyMs: 10 } })
    workers.start()
    await eventually(() => (workers.health().auditor?.turns ?? 0) >= 3 && (workers.health().reaper?.turns ?? 0) >= 3)
    await workers.stop()
    expect(await told(latchkey)).toEqual(['completed 200'])
  })
}
