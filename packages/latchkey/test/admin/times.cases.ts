/** How long operations take, over a fleet of two processes. */
import { afterEach, expect, it } from 'vitest'
import { type Asker, createAdmin, type OperationView } from '../../src/admin/index.ts'
import { createLatchkey, json, silentTelemetry, type Store } from '../../src/index.ts'
import { fakeClock } from '../engine/fake-clock.ts'

export interface OpenStore {
  readonly store: Store
  close(): Promise<void>
}

const by: Asker = { who: { name: 'vic', role: 'viewer' }, source: 'api' }

function startProcess(store: Store, name: string) {
  const clock = fakeClock()
  const latchkey = createLatchkey({ store, clock, scope: () => 'acme', maintenance: false, telemetry: silentTelemetry })
  const guarded = latchkey.guarded('pay', { onFailure: 'store', leaseMs: 1_000 })
  const atomic = latchkey.atomic('refund')
  const phased = latchkey.phased<number>('ship', { version: 1 }, async (x, ms) => {
    await x.phase('slow', async () => clock.advance(ms))
    return json(200, {})
  })
  latchkey.guarded('idle', { onFailure: 'hold' })
  const takes = (ms: number) => async () => {
    clock.advance(ms)
    return 1
  }
  let keys = 0
  const request = (input: number) => ({ scope: 'acme', key: `${name}-${(keys += 1)}`, input })
  return {
    latchkey,
    pay: (ms: number) => guarded.run(request(ms), takes(ms)),
    refund: (ms: number) => atomic.run(request(ms), takes(ms)),
    ship: (ms: number) => phased.run(request(ms)),
    fail: (ms: number) =>
      guarded
        .run(request(ms), async () => {
          clock.advance(ms)
          throw new Error('declined')
        })
        .catch(() => {}),
  }
}

export function timesCases(open: () => Promise<OpenStore>): void {
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0)) await end()
  })

  async function fleet() {
    const { store, close } = await open()
    const processes = [startProcess(store, 'web-1'), startProcess(store, 'web-2')] as const
    const admin = createAdmin({ latchkey: processes[0].latchkey })
    ends.push(close)
    const views = async (): Promise<ReadonlyMap<string, OperationView>> => {
      const read = await admin.operations(by)
      return new Map(read.kind === 'found' ? read.value.map(view => [view.name, view]) : [])
    }
    const flush = () => Promise.all(processes.map(({ latchkey }) => latchkey.close()))
    return { processes, admin, views, flush }
  }

  it('are those of all processes together, of every kind of work', async () => {
    const { processes, views, flush } = await fleet()
    const [first, second] = processes
    for (const ms of [3, 3, 3, 3]) await first.pay(ms)
    for (const ms of [3, 3, 3, 40, 40, 40, 40]) await second.pay(ms)
    await second.fail(450)
    await first.refund(7)
    await second.ship(80)
    await flush()
    const found = await views()
    expect(found.get('pay')).toMatchObject({
      kind: 'guarded',
      leaseMs: 1_000,
      unknown: 0,
      lastHour: { reserved: 12, replayed: 0, mismatched: 0 },
    })
    expect(found.get('pay')?.lastHour?.took).toEqual({ executions: 12, p50Ms: 5, p99Ms: 500, leaseUsed: 0.5 })
    expect(found.get('refund')?.lastHour?.took).toMatchObject({ executions: 1, p99Ms: 10, leaseUsed: undefined })
    expect(found.get('ship')?.lastHour?.took).toMatchObject({ executions: 1, p99Ms: 100, leaseUsed: undefined })
    expect(found.get('idle')).toMatchObject({ unknown: 0, lastHour: { reserved: 0 } })
    expect(found.get('idle')?.lastHour?.took).toBeUndefined()
  })

  it('are not among the rates by minute, which the first screen reads all the time', async () => {
    const { processes, admin, flush } = await fleet()
    await processes[0].pay(3)
    await flush()
    const [overview, rates] = [await admin.overview(by), await admin.rates(by)]
    const metrics = (rows: readonly { readonly metric: string }[]) => rows.map(({ metric }) => metric)
    expect(overview.kind === 'found' && metrics(overview.value.rates)).toEqual(['reserve.created'])
    expect(rates.kind === 'found' && metrics(rates.value)).toEqual(['reserve.created'])
  })
}
