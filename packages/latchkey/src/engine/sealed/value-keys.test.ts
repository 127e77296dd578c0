import { createSecretKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { ValueKeys } from './value-keys.ts'

const extracted = createSecretKey(Buffer.alloc(32, 'k'))
const bytesOf = (keys: ValueKeys, salt: Buffer) => keys.reading(salt).export().toString('hex')

describe('the keys of values', () => {
  it('are the same for the same salt in another process, and differ from salt to salt', () => {
    const { salt, key } = new ValueKeys(extracted).writing()
    const elsewhere = new ValueKeys(extracted)
    expect(bytesOf(elsewhere, salt)).toBe(key.export().toString('hex'))
    expect(bytesOf(elsewhere, Buffer.alloc(16))).not.toBe(bytesOf(elsewhere, salt))
  })

  it('serve a bounded number of values, and then another salt is drawn', () => {
    const keys = new ValueKeys(extracted, 3)
    const salts = Array.from({ length: 7 }, () => keys.writing().salt.toString('hex'))
    expect(salts.map(salt => salts.indexOf(salt))).toEqual([0, 0, 0, 3, 3, 3, 6])
  })

  it('begin with another salt in each process', () => {
    const salts = Array.from({ length: 100 }, () => new ValueKeys(extracted).writing().salt.toString('hex'))
    expect(new Set(salts).size).toBe(100)
  })

  it('are found again after more salts than are remembered', () => {
    const keys = new ValueKeys(extracted)
    const saltOf = (n: number) => Buffer.from(String(n).padStart(16, '0'))
    const first = bytesOf(keys, saltOf(0))
    for (let n = 1; n <= 1_500; n += 1) keys.reading(saltOf(n))
    expect(bytesOf(keys, saltOf(0))).toBe(first)
  })
})
