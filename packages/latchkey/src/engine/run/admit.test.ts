import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { waiters } from './admit.ts'

function row(id: string, scope = 'acme'): { id: string; scope: string } {
  return { id, scope }
}

async function settled(promise: Promise<unknown>): Promise<boolean> {
  let over = false
  void promise.then(() => {
    over = true
  })
  await new Promise(resolve => {
    setImmediate(resolve)
  })
  return over
}

it('ends a wait when its time is over', async () => {
  const clock = fakeClock()
  const wait = waiters(clock).wait(row('a'), 500)
  clock.advance(499)
  expect(await settled(wait)).toBe(false)
  clock.advance(1)
  expect(await wait).toBe(true)
})

it('wakes everybody who waits for the same row, nobody else, and leaves no timer', async () => {
  const clock = fakeClock()
  const group = waiters(clock)
  const first = group.wait(row('a'), 500)
  const second = group.wait(row('a'), 500)
  const other = group.wait(row('b'), 500)
  group.wake('a')
  expect(await Promise.all([first, second])).toEqual([true, true])
  expect(await settled(other)).toBe(false)
  expect(clock.timers()).toBe(1)
  group.wakeAll()
  expect(await other).toBe(true)
  expect(clock.timers()).toBe(0)
})

it('turns the 101st waiter of a row away at once, and takes another when one has ended', async () => {
  const clock = fakeClock()
  const group = waiters(clock)
  const hundred = Array.from({ length: 100 }, () => group.wait(row('a'), 500))
  expect(await group.wait(row('a'), 500)).toBe(false)
  expect(await settled(group.wait(row('b'), 500))).toBe(false)
  clock.advance(500)
  expect(await Promise.all(hundred)).not.toContain(false)
  expect(await settled(group.wait(row('a'), 500))).toBe(false)
})

it('never lets the waiters of one scope hold more places than they leave free, whatever their rows', async () => {
  const clock = fakeClock()
  const group = waiters(clock)
  const greedy = Array.from({ length: 500 }, (_, number) => group.wait(row(`row ${number % 20}`, 'greedy'), 500))
  expect(await settled(group.wait(row('another row', 'greedy'), 500))).toBe(true)
  const modest = Array.from({ length: 250 }, (_, number) => group.wait(row(`row ${number}`, 'modest'), 500))
  expect(await settled(group.wait(row('another row', 'modest'), 500))).toBe(true)
  expect(await settled(group.wait(row('a row', 'newcomer'), 500))).toBe(false)
  group.wake('row 0')
  await greedy[0]
  expect(await settled(group.wait(row('another row', 'modest'), 500))).toBe(false)
  group.wakeAll()
  expect(await Promise.all([...greedy, ...modest])).not.toContain(false)
})

it('turns the 1,001st waiter of a process away, whoever it is', async () => {
  const clock = fakeClock()
  const group = waiters(clock)
  const thousand = Array.from({ length: 1_000 }, (_, number) =>
    group.wait(row(`row ${number}`, `scope ${number}`), 500),
  )
  expect(await group.wait(row('a row', 'newcomer'), 500)).toBe(false)
  group.wake('row 0')
  await thousand[0]
  expect(await settled(group.wait(row('a row', 'newcomer'), 500))).toBe(false)
  group.wakeAll()
  expect(await Promise.all(thousand)).not.toContain(false)
})

it('keeps the process alive: a wait is somebody waiting', () => {
  const script = `
    import { systemClock } from ${JSON.stringify(new URL('../../ports/clock.ts', import.meta.url).href)}
    import { waiters } from ${JSON.stringify(new URL('admit.ts', import.meta.url).href)}
    await waiters(systemClock).wait({ id: 'a', scope: 'acme' }, 50)
    console.log('woken')`
  const flags = ['--import', 'tsx', '--input-type=module', '--eval', script]
  expect(spawnSync(process.execPath, flags, { encoding: 'utf8' }).stdout).toBe('woken\n')
})
