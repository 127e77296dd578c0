/** Rows that were fingerprinted under one HMAC key, met by processes that have the next one. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Hono } from 'hono'
import type { HmacKey, HmacKeys } from '../../../src/engine/fingerprint/fingerprint.ts'
import { idempotent } from '../../../src/http/hono/index.ts'
import { notExecuted } from '../../../src/ports/errors.ts'
import type { Store } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { latchkeyOn, operationName, runRequest, type TestLatchkey } from '../fixture.ts'

const rotating: HmacKeys = { current: Buffer.from('the new key'), previous: 'the old key' }

let store: Store
let open: TestLatchkey[]
beforeEach(() => {
  store = memoryStore()
  open = []
})
afterEach(() => Promise.all(open.map(each => each.close())))

/** The operation as a process of that configuration has it. */
function operationWith(hmac: HmacKey | HmacKeys) {
  const latchkey = latchkeyOn(store)
  open.push(latchkey)
  return latchkey.guarded(operationName, { onFailure: 'hold', fingerprint: { hmac } })
}

describe('while an HMAC key is rotated', () => {
  it('replays rows of the previous key, and tells of another request what differs', async () => {
    expect(await operationWith('the old key').run(runRequest('k'), () => 'first')).toBe('first')
    const operation = operationWith(rotating)
    expect(await operation.run(runRequest('k'), () => 'second')).toBe('first')
    await expect(operation.run(runRequest('k', { amount: 2 }), () => 'second')).rejects.toMatchObject({
      code: 'key-reused',
      message: expect.stringMatching(/\(body\)$/),
    })
  })

  it('writes new rows under the current key: they are the same when the previous one is gone', async () => {
    expect(await operationWith(rotating).run(runRequest('k'), () => 'first')).toBe('first')
    expect(await operationWith('the new key').run(runRequest('k'), () => 'second')).toBe('first')
    await expect(operationWith('the old key').run(runRequest('k'), () => 'second')).rejects.toMatchObject({
      code: 'key-reused',
    })
  })

  it('runs a row of the previous key again that is free for it, once', async () => {
    const failed = operationWith('the old key').run(runRequest('k'), () => Promise.reject(notExecuted()))
    await expect(failed).rejects.toMatchObject({ code: 'not-executed' })
    const operation = operationWith(rotating)
    expect(await operation.run(runRequest('k'), () => 'second')).toBe('second')
    expect(await operation.run(runRequest('k'), () => 'third')).toBe('second')
  })

  it('does so over HTTP as well', async () => {
    const appWith = (hmac: HmacKey | HmacKeys) => {
      let runs = 0
      return new Hono().post('/', idempotent(operationWith(hmac)), c => c.text(`run ${(runs += 1)} of one`))
    }
    const post = (app: Hono, body: string) =>
      app.request('/', {
        method: 'POST',
        headers: { 'Idempotency-Key': 'k', 'Content-Type': 'application/json' },
        body,
      })
    expect((await post(appWith('the old key'), '{"a":1}')).status).toBe(200)
    const app = appWith(rotating)
    const replayed = await post(app, '{ "a": 1 }')
    expect([replayed.status, await replayed.text()]).toEqual([200, 'run 1 of one'])
    expect(replayed.headers.get('Idempotent-Replayed')).toBe('true')
    const refused = await post(app, '{"a":2}')
    expect([refused.status, await refused.json()]).toMatchObject([422, { differing_parts: ['body'] }])
  })

  it.each([
    [{ current: '', previous: 'old' }],
    [{ current: 'new' }],
    [{ current: 'new', previous: 'old', next: 'x' }],
    [{ current: 7, previous: 'old' }],
  ])('refuses %j at construction, without showing a key', hmac => {
    const declare = () => operationWith(hmac as never)
    expect(declare).toThrow(/hmac/)
    expect(declare).not.toThrow(/old|new'/)
  })
})
