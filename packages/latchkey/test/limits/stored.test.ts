import { describe, expect, it } from 'vitest'
import { json } from 'latchkey'
import { createWorkers } from '../../src/workers/index.ts'
import { eventually } from '../engine/fixture.ts'
import { type Ask, asker, keysOf, ranOf, scene } from './scene.ts'

const hold = { onFailure: 'hold' } as const
const turn = () => new Promise(resolve => setImmediate(resolve))

/** After the first count of the scope, which no request waits for. */
async function counted(ask: Ask): Promise<void> {
  expect(await ask('first')).toBe('ran')
  await turn()
}

describe('open keys', () => {
  it('are limited by what has not come to its end, and whoever has a row is answered', async () => {
    const { latchkey, store, telemetry, clock } = scene({ openKeys: 2 })
    const pay = latchkey.guarded('pay', hold)
    const ask = asker(pay.run)
    await counted(ask)
    const lost = pay.run({ scope: 'acme', key: 'lost', input: 1 }, () => Promise.reject(new Error('no')))
    await expect(lost).rejects.toThrow()
    let end = () => {}
    const running = pay.run({ scope: 'acme', key: 'running', input: 1 }, () => new Promise<void>(done => (end = done)))
    await turn()
    expect([await ask('new'), await ask('new', { scope: 'other' })]).toEqual(['limit-exceeded', 'ran'])
    expect(await ask('lost')).toBe('outcome-unknown')
    expect((await store.list({ scope: 'acme', limit: 10 })).records).toHaveLength(3)
    expect(telemetry.told).toContainEqual(['limit.refused', { operation: 'pay', scope: 'acme', detail: 'open-keys' }])
    end()
    await running
    expect([await ask('new'), await ask('running')]).toEqual(['ran', 'replayed'])
    clock.leap(60_000)
    expect(await ask('newer')).toBe('ran')
  })

  it('do not count what is completed at once', async () => {
    const { latchkey } = scene({ openKeys: 2 })
    expect(await ranOf(asker(latchkey.guarded('pay', hold).run), keysOf('paid', 50))).toBe(50)
    expect(await ranOf(asker(latchkey.atomic('order').run), keysOf('ordered', 50))).toBe(50)
  })

  it('tell when they are counted again, and are, for a scope that is refused', async () => {
    const { latchkey, clock } = scene({ openKeys: 1 })
    await counted(asker(latchkey.guarded('pay', hold).run))
    const later = latchkey.deferred('later', { deadlineMs: 600_000 }, async () => json(200, {}))
    const ask = (key: string) => later.run({ scope: 'acme', key, input: 1 }).catch((error: unknown) => error)
    expect(await ask('a')).toMatchObject({ kind: 'accepted' })
    const refusal = await ask('b')
    expect(refusal).toMatchObject({ code: 'limit-exceeded' })
    expect((refusal as { retryAfterMs: number }).retryAfterMs).toBeLessThanOrEqual(5_000)
    const workers = createWorkers(latchkey, { only: ['resumer'], resumer: { everyMs: 10 } })
    workers.start()
    await eventually(async () => ((await ask('a')) as { kind?: string }).kind === 'done')
    await workers.drain()
    clock.leap(5_000)
    expect(await ask('b')).toMatchObject({ kind: 'accepted' })
  })

  it('are those of all processes', async () => {
    const { latchkey, another } = scene({ openKeys: 3 })
    const failing = latchkey.guarded('pay', hold)
    for (const key of ['a', 'b', 'c'])
      await failing.run({ scope: 'acme', key, input: 1 }, () => Promise.reject(new Error('no'))).catch(() => undefined)
    const ask = asker(another().guarded('pay', hold).run)
    // The first is not kept waiting for the count.
    expect([await ask('d'), await ask('e')]).toEqual(['ran', 'limit-exceeded'])
  })

  it('have a limit for one operation, too', async () => {
    const { latchkey } = scene({ openKeys: 10 })
    const few = latchkey.guarded('few', { ...hold, limits: { openKeys: 1 } })
    await counted(asker(few.run))
    const lost = few.run({ scope: 'acme', key: 'lost', input: 1 }, () => Promise.reject(new Error('no')))
    await expect(lost).rejects.toThrow()
    expect([await asker(few.run)('new'), await asker(latchkey.guarded('many', hold).run)('new')]).toEqual([
      ...['limit-exceeded', 'ran'],
    ])
  })
})

describe('stored bytes', () => {
  it('are limited until enough of them has expired, and no retry is refused for them', async () => {
    const { latchkey, store, clock, telemetry } = scene({ storedBytes: 10_000 })
    const brief = { leaseMs: 1_000, holdMsMax: 1_000, retentionMs: 30_000, allowShortRetention: true } as const
    const report = latchkey.guarded('report', { ...hold, ...brief })
    const ask = (key: string) =>
      report
        .run({ scope: 'acme', key, input: 1 }, () => 'x'.repeat(4_000))
        .then(
          text => text.length,
          (error: unknown) => (error as { code: string }).code,
        )
    expect([await ask('a'), await ask('b'), await ask('c'), await ask('d')]).toEqual([
      ...[4_000, 4_000, 4_000, 'limit-exceeded'],
    ])
    expect(await ask('a')).toBe(4_000)
    expect(telemetry.told).toContainEqual([
      'limit.refused',
      { operation: 'report', scope: 'acme', detail: 'stored-bytes' },
    ])
    clock.leap(5_000)
    expect(await ask('d')).toBe('limit-exceeded')
    clock.leap(60_000)
    expect(await store.reap({ limit: 10 })).toBe(3)
    clock.leap(5_000)
    expect(await ask('d')).toBe(4_000)
  })
})
