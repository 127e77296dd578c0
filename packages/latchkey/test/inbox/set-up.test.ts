import { describe, expect, it } from 'vitest'
import { json } from '../../src/index.ts'
import { inbox, parkedMessages } from '../../src/inbox/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { recordingTelemetry } from '../engine/fixture.ts'
import { withoutFaculties } from '../memory/fixture.ts'
import { act, guardedInbox, order, quiet } from './fixture.ts'

const latchkey = quiet(memoryStore())
const guarded = latchkey.guarded('orders.book', { onFailure: 'rerun' })
const phased = latchkey.phased('orders.ship', { version: 1 }, async () => json(201, {}))

describe('an inbox is refused', () => {
  it.each([
    [{}, 'needs consumer'],
    [{ consumer: '' }, 'consumer must be a name of 1 to 255 characters'],
    [{ consumer: 'a\0b' }, 'consumer must be a name'],
    [{ consumer: 'c', atemptsMax: 3 }, 'did you mean attemptsMax?'],
    [{ consumer: 'c', attemptsMax: 0 }, 'attemptsMax must be'],
    [{ consumer: 'c', onUnknown: 'block' }, "onUnknown must be 'retry' or 'park'"],
    [{ consumer: 'c', backoffMs: 10, backoffMsMax: 5 }, 'backoffMsMax must be at least backoffMs'],
    [{ consumer: 'c', input: () => 1 }, 'unknown option input'],
  ])('with the options %j', (options, message) => {
    // As from JavaScript.
    expect(() => inbox(guarded, options as never)).toThrow(message)
  })

  it('without the input of a phased operation', () => {
    expect(() => inbox(phased, { consumer: 'c' } as never)).toThrow('needs input, a function of the message')
  })

  it('on a store that could not park a message', () => {
    const plain = quiet(withoutFaculties(memoryStore()))
    const operation = plain.guarded('orders.book', { onFailure: 'rerun' })
    expect(() => inbox(operation, { consumer: 'c' })).toThrow('the core store has no inbox (traits.faculties)')
    expect(() => parkedMessages(plain)).toThrow('has no inbox')
  })

  it.each([
    [{ onFailure: 'store' }, "onFailure must be 'hold' or 'rerun'"],
    [{ onFailure: 'rerun', onStoreDown: 'run-unprotected' }, "onStoreDown must be 'refuse'"],
    [{ onFailure: 'rerun', keyAgeMsMax: 1_000 }, 'keyAgeMsMax reads the time of a UUIDv7'],
  ] as const)('for an operation with %j', (options, message) => {
    const operation = quiet(memoryStore()).guarded('orders.book', options)
    expect(() => inbox(operation, { consumer: 'c' })).toThrow(message)
  })
})

it('rejects what is no message', async () => {
  const { receive } = guardedInbox(memoryStore())
  await expect(receive({ ...order('1'), data: undefined }, () => {})).rejects.toThrow('must be bytes or JSON')
  const circular: unknown[] = []
  circular.push(circular)
  await expect(receive({ ...order('1'), data: circular }, () => {})).rejects.toThrow('must be bytes or JSON')
})

it('demands of operators who acts and why, and an id that is one', async () => {
  const parked = parkedMessages(latchkey)
  const id = '00000000-0000-4000-8000-000000000000'
  await expect(parked.redrive(id, { by: '', reason: 'x' })).rejects.toThrow('redrive needs { by, reason }')
  await expect(parked.discard(id, { by: 'x', reason: ' ' })).rejects.toThrow('discard needs { by, reason }')
  await expect(parked.discard('order-1', act)).rejects.toThrow('is named by the id of list()')
  await expect(parked.redrive(id, act, { as: '' })).rejects.toThrow('as must be')
  await expect(parked.list({ limit: 5_000 })).rejects.toThrow('limit')
  expect(await parked.redrive(id, act)).toEqual({ kind: 'not-found' })
})

it('counts and reports what it parks, without the id of the message', async () => {
  const telemetry = recordingTelemetry()
  const { receive } = guardedInbox(memoryStore(), { latchkey: quiet(memoryStore(), { telemetry }) })
  await receive(order('secret-7'), () => {})
  await receive(order('secret-7', { order: 2 }), () => {})
  expect(telemetry.told).toContainEqual([
    'parked',
    expect.objectContaining({ operation: 'orders.book', detail: 'mismatch' }),
  ])
  expect(JSON.stringify(telemetry.told)).toContain('a message was parked')
  expect(JSON.stringify(telemetry.told)).not.toContain('secret-7')
})

it('describes a row by its message', async () => {
  const own = quiet(memoryStore())
  const operation = own.guarded('orders.book', {
    onFailure: 'rerun',
    describe: data => `order ${JSON.stringify(data)}`,
  })
  await inbox(operation, { consumer: 'c' }).receive(order('1'), () => {})
  expect((await own.list({ scope: 'c' })).records).toMatchObject([{ description: 'order {"order":1}' }])
})
