import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import { createLatchkey, isLatchkeyError, json, type Latchkey, type OperationOptions } from '../../src/index.ts'
import { idempotent } from '../../src/http/fetch/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { leapingClock } from '../engine/fake-clock.ts'
import { adapterStores } from './stores.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

let clock: ReturnType<typeof leapingClock>
let latchkey: Latchkey<unknown, Request>
let runs: number

function open(profile: 'ietf' | 'stripe' = 'ietf'): void {
  clock = leapingClock()
  const store = memoryStore({ clock })
  latchkey = createLatchkey<unknown, Request>({ store, clock, scope: () => 'acme', http: { profile } })
  runs = 0
}

beforeEach(() => open())
afterEach(() => latchkey.close())

type Options = OperationOptions<Request> & { readonly onFailure?: 'rerun' | 'hold' }

/** One route with these options, as a function of the key. The response has the status that the request names. */
function route(options: Options): (key: string, headers?: Record<string, string>) => Promise<Response> {
  const operation = latchkey.guarded('orders.create', { onFailure: 'rerun', ...options })
  const handle = idempotent(operation, async (request: Request) => {
    runs += 1
    return Response.json({ run: runs }, { status: Number(request.headers.get('x-answer') ?? '201') })
  })
  return (key, headers = {}) =>
    handle(
      new Request('http://shop.test/orders', {
        method: 'POST',
        body: '{}',
        headers: { 'Idempotency-Key': key, 'Content-Type': 'application/json', ...headers },
      }),
    )
}

const problemOf = async (response: Response) => {
  const { type } = (await response.json()) as { type: string }
  return [response.status, type, response.headers.get('Latchkey-Retry')]
}

/** A UUIDv7 made that long ago. */
function keyOf(agoMs: number): string {
  const time = (clock.nowMs() - agoMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8, 12)}-7abc-8def-0123456789ab`
}

describe('a key whose answer has expired', () => {
  it('is new again by default', async () => {
    const post = route({})
    await post('k')
    clock.leap(25 * hour)
    expect((await post('k')).status).toBe(201)
    expect(runs).toBe(2)
  })

  it('is gone for as long as its tombstone is kept, and new after it', async () => {
    const post = route({ onExpiry: 'gone', tombstoneMs: 2 * day })
    expect((await post('k')).status).toBe(201)
    clock.leap(12 * hour)
    expect((await post('k')).headers.get('Idempotent-Replayed')).toBe('true')
    clock.leap(13 * hour)
    const gone = [410, 'urn:latchkey:problem:key-expired', 'no']
    expect(await problemOf(await post('k'))).toEqual(gone)
    await latchkey[engine].store.reap({ limit: 10 })
    expect(await problemOf(await post('k'))).toEqual(gone)
    expect(runs).toBe(1)
    clock.leap(2 * day + hour)
    expect((await post('k')).status).toBe(201)
    expect(runs).toBe(2)
  })

  it('is told as gone in the shape of Stripe, too', async () => {
    await latchkey.close()
    open('stripe')
    const post = route({ onExpiry: 'gone' })
    await post('k')
    clock.leap(25 * hour)
    const gone = await post('k')
    expect([gone.status, gone.headers.get('Latchkey-Retry')]).toEqual([410, 'no'])
    expect(await gone.json()).toMatchObject({ error: { type: 'invalid_request_error', code: 'key_expired' } })
  })

  it('is gone for a plain function, too', async () => {
    const operation = latchkey.guarded('orders.create', { onFailure: 'rerun', onExpiry: 'gone' })
    const run = () => operation.run({ scope: 'acme', key: 'k', input: 1 }, () => (runs += 1))
    await run()
    clock.leap(25 * hour)
    await expect(run()).rejects.toSatisfy(error => isLatchkeyError(error, 'key-expired'))
    expect(runs).toBe(1)
  })
})

describe('a limit for the age of keys', () => {
  const tooOld = [400, 'urn:latchkey:problem:key-too-old', 'no']

  it('lets a young key in, answers it for as long as its row is there, and refuses it afterwards', async () => {
    const post = route({ keyAgeMsMax: 12 * hour })
    const key = keyOf(0)
    expect((await post(key)).status).toBe(201)
    clock.leap(13 * hour)
    expect((await post(key)).headers.get('Idempotent-Replayed')).toBe('true')
    clock.leap(12 * hour)
    expect(await problemOf(await post(key))).toEqual(tooOld)
    expect(runs).toBe(1)
  })

  it('reserves nothing for a key that is too old', async () => {
    const post = route({ keyAgeMsMax: hour })
    const key = keyOf(hour + 1)
    expect(await problemOf(await post(key))).toEqual(tooOld)
    const id = latchkey.identify({ scope: 'acme', operation: 'orders.create', key })
    expect(await latchkey[engine].store.read(id)).toBeUndefined()
    expect(runs).toBe(0)
  })

  it('refuses what failed before without an effect, and answers for what is unknown', async () => {
    const rerun = route({ keyAgeMsMax: hour })
    const key = keyOf(0)
    expect((await rerun(key, { 'x-answer': '503' })).status).toBe(503)
    clock.leap(2 * hour)
    expect(await problemOf(await rerun(key))).toEqual(tooOld)
    await latchkey.close()
    open()
    const hold = route({ keyAgeMsMax: hour, onFailure: 'hold' })
    const held = keyOf(0)
    expect((await hold(held, { 'x-answer': '503' })).status).toBe(504)
    clock.leap(2 * hour)
    expect(await problemOf(await hold(held))).toEqual([409, 'urn:latchkey:problem:outcome-unknown', 'later'])
    expect(runs).toBe(1)
  })

  it('says gone, not too old, while a tombstone is kept', async () => {
    const post = route({ keyAgeMsMax: hour, onExpiry: 'gone' })
    const key = keyOf(0)
    await post(key)
    clock.leap(25 * hour)
    expect((await post(key)).status).toBe(410)
  })

  it.each([
    ['another shape', () => 'order-17', 'UUID of version 7'],
    ['a time far ahead', () => keyOf(-6 * minute), '5 minutes ahead'],
  ])('refuses a key of %s, and names the cure', async (_, key, cure) => {
    const refused = await route({ keyAgeMsMax: hour })(key())
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      type: 'urn:latchkey:problem:invalid-key',
      reason: 'format',
      detail: expect.stringContaining(cure),
    })
    expect(runs).toBe(0)
  })

  it('holds for plain functions', async () => {
    const operation = latchkey.guarded('orders.create', { onFailure: 'rerun', keyAgeMsMax: hour })
    const run = (key: string) => operation.run({ scope: 'acme', key, input: 1 }, () => (runs += 1))
    const young = keyOf(0)
    expect(await run(young)).toBe(1)
    await expect(run(keyOf(2 * hour))).rejects.toSatisfy(error => isLatchkeyError(error, 'key-too-old'))
    await expect(run('order-17')).rejects.toSatisfy(error => isLatchkeyError(error, 'invalid-key'))
    clock.leap(2 * hour)
    expect(await run(young)).toBe(1)
  })
})

describe('a limit for the age of keys, in every kind', () => {
  it('reserves nothing for a key that is too old, and answers for what has a row', async () => {
    const database = await adapterStores.transactional()
    const transactional = createLatchkey({ store: database.store, clock, scope: () => 'acme' })
    const limit = { keyAgeMsMax: hour }
    const atomic = transactional.atomic('kinds.atomic', limit)
    const done = async () => json(201, (runs += 1))
    const phased = transactional.phased('kinds.phased', { version: 1, ...limit }, done)
    const deferred = transactional.deferred('kinds.deferred', { deadlineMs: hour, ...limit }, done)
    const kinds = {
      atomic: (key: string) => atomic.run({ scope: 'acme', key, input: 1 }, () => (runs += 1)),
      phased: (key: string) => phased.run({ scope: 'acme', key, input: 1 }),
      deferred: (key: string) => deferred.run({ scope: 'acme', key, input: 1 }),
    }
    const old = keyOf(2 * hour)
    const young = keyOf(0)
    const first = await Promise.all(Object.values(kinds).map(run => run(young)))
    clock.leap(2 * hour)
    for (const [kind, run] of Object.entries(kinds)) {
      await expect(run(old)).rejects.toSatisfy(error => isLatchkeyError(error, 'key-too-old'))
      const id = transactional.identify({ scope: 'acme', operation: `kinds.${kind}`, key: old })
      expect(await database.store.read(id)).toBeUndefined()
    }
    expect(await Promise.all(Object.values(kinds).map(run => run(young)))).toEqual(first)
    expect(runs).toBe(2)
    await transactional.close()
    await database.close()
  })
})

describe('a limit for the age of requests', () => {
  const timed: Options = {
    requestAgeMsMax: hour,
    requestTime(request) {
      const said = request.headers.get('x-made-at')
      return said === null ? undefined : new Date(said)
    },
  }
  const at = (agoMs: number) => ({ 'x-made-at': new Date(clock.nowMs() - agoMs).toISOString() })

  it('runs what is young, answers what has a row, and refuses the rest', async () => {
    const post = route(timed)
    const made = at(0)
    expect((await post('k', made)).status).toBe(201)
    clock.leap(2 * hour)
    expect((await post('k', made)).headers.get('Idempotent-Replayed')).toBe('true')
    for (const headers of [made, {}, { 'x-made-at': 'yesterday' }, at(-hour)]) {
      expect((await problemOf(await post('other', headers)))[1]).toBe('urn:latchkey:problem:key-too-old')
    }
    expect(runs).toBe(1)
  })
})
