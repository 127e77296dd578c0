import { describe, expect, it } from 'vitest'
import { underA } from '../../../test/sealed/keys.ts'
import { systemClock } from '../../ports/clock.ts'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { createLatchkey } from '../latchkey.ts'
import { createKeyring, type EncryptionOptions, type Kms } from './keyring.ts'
import { open, type Place, seal } from './seal.ts'

const place: Place = { identity: 'row-1', column: 'outcome' }
const bytes = Buffer.from('hello')

/** Wraps by exclusive or, and counts its calls. */
function testKms() {
  const calls = { wrap: 0, unwrap: 0 }
  const turned = (given: Uint8Array) => Uint8Array.from(given, byte => byte ^ 0x5a)
  const kms: Kms = {
    async wrap(key) {
      calls.wrap += 1
      return turned(key)
    },
    async unwrap(wrapped) {
      calls.unwrap += 1
      return turned(wrapped)
    },
  }
  return { calls, kms }
}

const under = (kms: Kms): EncryptionOptions => ({ ...underA, keys: { kms }, current: 'kms' })

describe('a KMS', () => {
  it('is asked for one data key an hour, and its own values are opened without it', async () => {
    const { calls, kms } = testKms()
    const clock = fakeClock()
    const ring = createKeyring(under(kms), clock)
    const [sealed] = await Promise.all([1, 2, 3].map(async () => seal(ring, place, { bytes })))
    expect(await open(ring, place, sealed ?? bytes)).toMatchObject({ bytes })
    expect(calls).toEqual({ wrap: 1, unwrap: 0 })
    clock.advance(3_600_000)
    await seal(ring, place, { bytes })
    expect(calls.wrap).toBe(2)
  })

  it('unwraps a data key of another process once, also for many readers at once', async () => {
    const { calls, kms } = testKms()
    const sealed = await seal(createKeyring(under(kms), systemClock), place, { bytes })
    const reader = createKeyring(under(kms), systemClock)
    const opened = await Promise.all(Array.from({ length: 50 }, () => open(reader, place, sealed)))
    expect(opened.every(each => each.kind === 'opened')).toBe(true)
    await open(reader, place, sealed)
    expect(calls.unwrap).toBe(1)
  })

  it('holds a bounded number of data keys, and asks again for one that it has dropped', async () => {
    const { calls, kms } = testKms()
    const sealed = []
    for (let n = 0; n < 1_001; n += 1) sealed.push(await seal(createKeyring(under(kms), systemClock), place, { bytes }))
    const reader = createKeyring(under(kms), systemClock)
    for (const value of sealed) await open(reader, place, value)
    await open(reader, place, sealed.at(-1) ?? bytes)
    expect(calls.unwrap).toBe(1_001)
    await open(reader, place, sealed[0] ?? bytes)
    expect(calls.unwrap).toBe(1_002)
  })

  it('that fails is asked again by the next call, and nothing was sent to the store', async () => {
    const { kms } = testKms()
    let broken = true
    const flaky: Kms = { ...kms, wrap: key => (broken ? Promise.reject(new Error('throttled')) : kms.wrap(key)) }
    const ring = createKeyring(under(flaky), systemClock)
    await expect(seal(ring, place, { bytes })).rejects.toMatchObject({
      code: 'store-unavailable',
      sent: false,
      message: 'wrap of encryption.keys.kms failed: throttled. Check the KMS and the rights on its key',
    })
    broken = false
    expect(await open(ring, place, await seal(ring, place, { bytes }))).toMatchObject({ bytes })
  })

  it('that does not unwrap makes its row unreadable for now, and no other, and runs nothing', async () => {
    const { kms } = testKms()
    let broken = false
    const flaky: Kms = { ...kms, unwrap: key => (broken ? Promise.reject(new Error('denied')) : kms.unwrap(key)) }
    const store = memoryStore()
    const open = () => createLatchkey({ store, scope: () => 'acme', encryption: under(flaky), maintenance: false })
    const request = { scope: 'acme', key: 'k', input: 1 }
    const pay = () => open().guarded('pay', { onFailure: 'hold' })
    await pay().run(request, async () => 'paid')
    broken = true
    await expect(pay().run(request, async () => 'twice')).rejects.toMatchObject({ code: 'row-unreadable' })
    broken = false
    expect(await pay().run(request, async () => 'twice')).toBe('paid')
  })
})

describe('keys', () => {
  const wrong: readonly [string, Partial<Record<keyof EncryptionOptions, unknown>>, string][] = [
    [
      'a short key',
      { keys: { a: Buffer.alloc(16) } },
      'encryption.keys.a must be 32 bytes, or a KMS with wrap, unwrap',
    ],
    [
      'a current key that is not there',
      { current: 'b' },
      `encryption.current must be a name in encryption.keys (got 'b')`,
    ],
    ['a name with a slash', { keys: { 'a/b': Buffer.alloc(32) } }, '1 to 64 letters'],
    ['no index key', { indexKey: undefined }, 'encryption needs indexKey'],
    ['a text for a key', { indexKey: 'secret' }, 'encryption.indexKey must be 32 bytes'],
  ]
  it.each(wrong)('are refused at construction: %s', (_, over, message) => {
    const encryption = { ...underA, ...over } as EncryptionOptions
    const create = () => createLatchkey({ store: memoryStore(), scope: () => 'acme', encryption, maintenance: false })
    expect(create).toThrow(message)
    expect(create).not.toThrow('secret')
  })

  it('hash a reference to the same text every time, and another reference to another', () => {
    const ring = createKeyring(underA, systemClock)
    expect(ring.indexOf('ref', 'evt_1')).toBe(ring.indexOf('ref', 'evt_1'))
    expect(ring.indexOf('re', 'fevt_1')).not.toBe(ring.indexOf('ref', 'evt_1'))
    const other = createKeyring({ ...underA, indexKey: Buffer.alloc(32, 'j') }, systemClock)
    expect(other.indexOf('ref', 'evt_1')).not.toBe(ring.indexOf('ref', 'evt_1'))
  })
})
