import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fakeClock } from '../../test/engine/fake-clock.ts'
import { consoleTelemetry } from './console-telemetry.ts'

let lines: string[] = []
beforeEach(() => {
  lines = []
  vi.spyOn(console, 'warn').mockImplementation((line: string) => void lines.push(line))
})
afterEach(() => void vi.restoreAllMocks())

describe('the console telemetry', () => {
  it('writes what happened, to which operation and row, and what the error says', () => {
    consoleTelemetry().report('the scope could not be resolved', { operation: 'pay', error: new Error('no account') })
    consoleTelemetry().report('lease expired', { operation: 'pay', identity: 'c0ffee' })
    expect(lines).toEqual([
      '[latchkey] pay: the scope could not be resolved: no account',
      '[latchkey] pay: lease expired (row c0ffee)',
    ])
  })

  it('writes a cause once a minute, whatever its errors say, and then how many lines it left out', () => {
    const clock = fakeClock()
    const telemetry = consoleTelemetry({ clock })
    for (let n = 0; n < 42; n++) telemetry.report('refused', { operation: 'pay', error: new TypeError(`request ${n}`) })
    clock.advance(59_999)
    telemetry.report('refused', { operation: 'pay', error: new TypeError('almost a minute') })
    expect(lines).toEqual(['[latchkey] pay: refused: request 0'])
    clock.advance(1)
    telemetry.report('refused', { operation: 'pay', error: new TypeError('again') })
    expect(lines.slice(1)).toEqual(['[latchkey] pay: refused: again (42 more since this was last written)'])
  })

  it('tells operations, messages and error codes apart', () => {
    const telemetry = consoleTelemetry({ clock: fakeClock() })
    telemetry.report('refused', { operation: 'pay' })
    telemetry.report('refused', { operation: 'refund' })
    telemetry.report('resumed', { operation: 'pay' })
    telemetry.report('refused', { operation: 'pay', error: Object.assign(new Error('away'), { code: 'ECONNREFUSED' }) })
    telemetry.report('refused', { operation: 'pay', error: Object.assign(new Error('wrong'), { code: '28P01' }) })
    expect(lines).toHaveLength(5)
  })

  it('writes at most a hundred causes a minute, and others in the next one', () => {
    const clock = fakeClock()
    const telemetry = consoleTelemetry({ clock })
    for (let n = 0; n < 5_000; n++) telemetry.report(`cause ${n}`, {})
    expect(lines).toHaveLength(100)
    clock.advance(60_000)
    telemetry.report('another', {})
    expect(lines).toHaveLength(101)
  })

  it('says what a connection failed with that failed on every address of its host', () => {
    const refused = new Error('connect ECONNREFUSED 127.0.0.1:1')
    consoleTelemetry().report('the store failed', { error: new AggregateError([refused]) })
    expect(lines).toEqual(['[latchkey] the store failed: connect ECONNREFUSED 127.0.0.1:1'])
  })

  it('writes one line of bounded length, whatever a client has put into an error', () => {
    const forged = 'no tenant\n[latchkey] pay: all is well\r\u001b[2K\u2028\u0085'
    consoleTelemetry().report('refused', { operation: 'pay', error: new Error(forged) })
    expect(lines).toEqual([
      '[latchkey] pay: refused: no tenant\\u000a[latchkey] pay: all is well\\u000d\\u001b[2K\\u2028\\u0085',
    ])
    consoleTelemetry().report('refused', { error: new Error('x'.repeat(1_000_000)), identity: 'c0ffee' })
    expect(lines[1]).toBe(`[latchkey] refused: ${'x'.repeat(2_000)} (row c0ffee)`)
  })

  it('throws nothing, whatever it is given and whatever the console does', () => {
    const telemetry = consoleTelemetry()
    const hostile = Object.defineProperty({}, 'code', {
      get() {
        throw new Error('no')
      },
    })
    expect(() => telemetry.report('refused', { error: hostile })).not.toThrow()
    vi.spyOn(console, 'warn').mockImplementation(() => {
      throw new Error('EPIPE')
    })
    expect(() => telemetry.report('refused', {})).not.toThrow()
  })
})
