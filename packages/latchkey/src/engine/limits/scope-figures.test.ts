import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeClock, fakeClock } from '../../../test/engine/fake-clock.ts'
import { recordingTelemetry } from '../../../test/engine/fixture.ts'
import { storeCalls } from '../store/call.ts'
import { ScopeFigures } from './scope-figures.ts'

let clock: FakeClock
let telemetry: ReturnType<typeof recordingTelemetry>
/** What the store has of each scope. */
let stored: Map<string, number>
let counted: string[]
let answer: (scope: string) => Promise<number>

beforeEach(() => {
  clock = fakeClock()
  telemetry = recordingTelemetry()
  stored = new Map()
  counted = []
  answer = async scope => stored.get(scope) ?? 0
})

/** Of bytes, unless a new key counts at once. */
function figuresOf(max: number, perKey: 0 | 1 = 0): ScopeFigures {
  const calls = storeCalls({ storeName: 'memory', timeoutMs: 2_000, clock, telemetry })
  const count = (scope: string) => (counted.push(scope), answer(scope))
  return new ScopeFigures({ calls, clock, telemetry }, { limit: 'open-keys', max, perKey, count })
}

const turn = () => new Promise(resolve => setImmediate(resolve))

/** After the first count of the scope. */
async function known(figures: ScopeFigures, scope = 'acme'): Promise<void> {
  await figures.take(scope, true)
  await turn()
}

describe('the figure of a scope', () => {
  it('is counted when the scope asks, and again after a minute, while nobody waits', async () => {
    const figures = figuresOf(10)
    stored.set('acme', 9)
    expect(figures.take('acme', true)).toBe(true)
    await turn()
    for (let second = 0; second < 59; second++) {
      expect(figures.take('acme', true)).toBe(true)
      clock.advance(1_000)
    }
    expect(counted).toEqual(['acme'])
    clock.advance(1_000)
    expect(figures.take('acme', true)).toBe(true)
    expect(counted).toEqual(['acme', 'acme'])
  })

  it('refuses a scope that has as much as it may, and no other', async () => {
    const figures = figuresOf(10)
    stored.set('acme', 10)
    await known(figures)
    await known(figures, 'other')
    expect([figures.take('acme', true), figures.take('other', true)]).toEqual([false, true])
    expect([figures.nextInMs('acme'), figures.nextInMs('other')]).toEqual([5_000, 0])
  })

  it('refuses nobody by a count that is older than five seconds', async () => {
    const figures = figuresOf(10)
    stored.set('acme', 10)
    await known(figures)
    clock.advance(4_999)
    expect(figures.take('acme', true)).toBe(false)
    stored.set('acme', 3)
    clock.advance(1)
    const [one, two] = [figures.take('acme', true), figures.take('acme', true)]
    expect([await one, await two]).toEqual([true, true])
    expect(counted).toHaveLength(2)
  })

  it('changes by what this process does, until it is counted again', async () => {
    const figures = figuresOf(3)
    await known(figures)
    for (let n = 0; n < 3; n++) figures.change('acme', 1)
    expect(figures.take('acme', true)).toBe(false)
    figures.change('acme', -1)
    expect(figures.take('acme', true)).toBe(true)
    clock.advance(60_000)
    await known(figures)
    figures.change('acme', 2)
    expect(figures.take('acme', true)).toBe(true)
  })

  it('lets no more pass at once than there is room for, and takes back what did not begin', async () => {
    const figures = figuresOf(10, 1)
    stored.set('acme', 7)
    await known(figures)
    figures.giveBack('acme')
    const atOnce = () => Array.from({ length: 5 }, () => figures.take('acme', true)).filter(passes => passes === true)
    expect(atOnce()).toHaveLength(3)
    figures.giveBack('acme')
    expect(atOnce()).toHaveLength(1)
  })

  it('lets no more pass than there is room for of those who waited for a count', async () => {
    const figures = figuresOf(10, 1)
    stored.set('acme', 10)
    await known(figures)
    stored.set('acme', 8)
    clock.advance(5_000)
    const answers = await Promise.all(Array.from({ length: 5 }, async () => figures.take('acme', true)))
    expect(answers).toEqual([true, true, false, false, false])
  })

  it('does not forget what ends while it is counted', async () => {
    const figures = figuresOf(3)
    await known(figures)
    for (let n = 0; n < 3; n++) figures.change('acme', 1)
    let end = (_: number) => {}
    answer = () => new Promise(resolve => (end = resolve))
    clock.advance(5_000)
    const waiting = figures.take('acme', true)
    await turn()
    figures.change('acme', -1)
    end(3)
    expect(await waiting).toBe(true)
  })

  it('never falls below nothing, which would make room that there is not', async () => {
    const figures = figuresOf(3)
    await known(figures)
    for (let n = 0; n < 10; n++) figures.change('acme', -1)
    for (let n = 0; n < 3; n++) figures.change('acme', 1)
    expect(figures.take('acme', true)).toBe(false)
  })

  it('stays what it was when the store does not answer, and is asked for again after five seconds', async () => {
    const figures = figuresOf(10)
    stored.set('acme', 10)
    await known(figures)
    answer = () => Promise.reject(new Error('connection terminated'))
    clock.advance(5_000)
    expect(await figures.take('acme', true)).toBe(false)
    expect(figures.take('acme', true)).toBe(false)
    expect(counted).toHaveLength(2)
    expect(JSON.stringify(telemetry.told)).toContain('could not be counted')
  })

  it('is counted for four scopes at once and no more', async () => {
    const figures = figuresOf(10)
    answer = () => new Promise(() => {})
    for (let n = 0; n < 20; n++) expect(figures.take(`scope ${n}`, true)).toBe(true)
    await turn()
    expect(counted).toHaveLength(4)
  })

  it('is counted beside a caller that may not wait', async () => {
    const figures = figuresOf(10)
    stored.set('acme', 10)
    await known(figures)
    stored.set('acme', 3)
    clock.advance(5_000)
    expect(figures.take('acme', false)).toBe(false)
    await turn()
    expect(figures.take('acme', false)).toBe(true)
  })
})
