import { createDecipheriv, hkdfSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromAToB, keyA, underA, underB } from '../../../test/sealed/keys.ts'
import { systemClock } from '../../ports/clock.ts'
import { createKeyring } from './keyring.ts'
import { keyNameOf, open, openText, type Place, seal, sealText } from './seal.ts'

const a = createKeyring(underA, systemClock)
const place: Place = { identity: 'row-1', column: 'outcome' }
const columns: readonly Place['column'][] = ['outcome', 'description', 'input', 'step', 'message', 'downstream-id']
const anyBytes = fc.uint8Array({ maxLength: 300 })
const anyPlace = fc.record({ identity: fc.string(), column: fc.constantFrom(...columns) })
const anyBinding = fc.option(fc.integer({ min: 0, max: 2 ** 47 }), { nil: undefined })

describe('a sealed value', () => {
  it('opens in its own place to the same bytes, whatever they are', () =>
    fc.assert(
      fc.asyncProperty(anyBytes, anyPlace, anyBinding, async (bytes, where, binding) => {
        const opened = await open(a, where, await seal(a, where, { bytes, binding }))
        expect(opened).toEqual({ kind: 'opened', bytes: Buffer.from(bytes), binding })
      }),
    ))

  it('opens in no other column of its row, and in no other row', async () => {
    for (const column of columns) {
      const sealed = await seal(a, { identity: 'row-1', column }, { bytes: Buffer.from('hello') })
      for (const other of columns) {
        const { kind } = await open(a, { identity: 'row-1', column: other }, sealed)
        expect(kind, `${column} as ${other}`).toBe(other === column ? 'opened' : 'unreadable')
      }
      expect((await open(a, { identity: 'row-2', column }, sealed)).kind).toBe('unreadable')
    }
  })

  it('does not open with a byte changed, cut or added', () =>
    fc.assert(
      fc.asyncProperty(
        anyBytes,
        anyPlace,
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        async (bytes, where, at, flip) => {
          const sealed = await seal(a, where, { bytes, binding: 1 })
          const changed = Buffer.from(sealed)
          changed[at % changed.length] = (changed[at % changed.length] ?? 0) ^ flip
          expect(await open(a, where, changed)).toMatchObject({ kind: 'unreadable' })
          expect(await open(a, where, sealed.subarray(0, at % sealed.length))).toMatchObject({ kind: 'unreadable' })
          expect(await open(a, where, Buffer.concat([sealed, Buffer.from([flip])]))).toMatchObject({
            kind: 'unreadable',
          })
        },
      ),
    ))

  it('is text again as text, and plain text stays what it is', () =>
    fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), async text => {
        const sealed = await sealText(a, place, text, 3)
        expect(await openText(a, place, sealed)).toMatchObject({ kind: 'opened', text, binding: 3 })
        if (!text.startsWith('\u0001')) expect(await openText(a, place, text)).toMatchObject({ kind: 'opened', text })
      }),
    ))

  it('never repeats a nonce', async () => {
    const nonces = new Set<string>()
    for (let n = 0; n < 2_000; n += 1) {
      const sealed = await seal(a, place, { bytes: new Uint8Array() })
      nonces.add(sealed.subarray(-28, -16).toString('hex'))
    }
    expect(nonces.size).toBe(2_000)
  })

  it('is AES-256-GCM under a key that HKDF derives from its salt, as RFC 5869 has it', async () => {
    const sealed = await seal(a, place, { bytes: Buffer.from('hello') })
    const info = Buffer.concat([Buffer.from('salt:'), sealed.subarray(5, 21)])
    const key = hkdfSync('sha256', keyA, 'latchkey.sealed.v1.values', info, 32)
    // Format, the key's name with its length, no wrapped key.
    const head = Buffer.from([0x10, 1, 0x61, 0, 0])
    expect(sealed.subarray(0, 5)).toEqual(head)
    const decipher = createDecipheriv('aes-256-gcm', Buffer.from(key), sealed.subarray(21, 33))
    decipher.setAAD(Buffer.concat([head, Buffer.from('outcome:row-1')]))
    decipher.setAuthTag(sealed.subarray(-16))
    expect(Buffer.concat([decipher.update(sealed.subarray(33, -16)), decipher.final()]).toString()).toBe('hello')
  })

  it('names its key, is read by it when another one writes, and not without it', async () => {
    const sealed = await seal(a, place, { bytes: Buffer.from('hello') })
    expect(keyNameOf(sealed)).toBe('a')
    const both = createKeyring(fromAToB, systemClock)
    expect(await open(both, place, sealed)).toMatchObject({ bytes: Buffer.from('hello') })
    expect(keyNameOf(await seal(both, place, { bytes: new Uint8Array() }))).toBe('b')
    const without = await open(createKeyring(underB, systemClock), place, sealed)
    expect(without).toMatchObject({
      why: expect.stringContaining('under the key a, which encryption.keys does not have'),
    })
  })

  it('is not opened by another key of the same name', async () => {
    const other = createKeyring({ ...underA, keys: { a: Buffer.alloc(32, 'x') } }, systemClock)
    expect(await open(other, place, await seal(a, place, { bytes: new Uint8Array(3) }))).toMatchObject({
      kind: 'unreadable',
    })
  })
})
