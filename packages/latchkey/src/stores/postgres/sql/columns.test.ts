import { describe, expect, it } from 'vitest'
import {
  arrayParameter,
  BinaryWriter,
  byteas,
  float8s,
  isUuid,
  parameter,
  smallints,
  texts,
  uuids,
  writeArray,
} from './columns.ts'

const id = '00010203-0405-0607-0809-0a0b0c0d0e0f'

/** One dimension of `count` elements, counted from one. */
function head(type: number, count: number, hasNulls = 0): Buffer {
  const bytes = Buffer.alloc(20)
  for (const [at, value] of [1, hasNulls, type, count, 1].entries()) bytes.writeInt32BE(value, 4 * at)
  return bytes
}

describe('the column of a batch', () => {
  it('is an array of binary values, each behind its length', () => {
    expect(
      arrayParameter(
        uuids<string>(text => text),
        [id, id.toUpperCase()],
      ).toString('hex'),
    ).toBe(`${head(2950, 2).toString('hex')}${'00000010000102030405060708090a0b0c0d0e0f'.repeat(2)}`)
    expect(
      arrayParameter(
        smallints<number>(value => value),
        [1, -2],
      ).toString('hex'),
    ).toBe(`${head(21, 2).toString('hex')}00000002000100000002fffe`)
    expect(
      arrayParameter(
        float8s<number>(value => value),
        [1.5],
      ).toString('hex'),
    ).toBe(`${head(701, 1).toString('hex')}000000083ff8000000000000`)
    expect(
      arrayParameter(
        byteas<Uint8Array>(value => value),
        [Uint8Array.of(), Uint8Array.of(0, 255)],
      ),
    ).toEqual(Buffer.concat([head(17, 2), Buffer.from([0, 0, 0, 0, 0, 0, 0, 2, 0, 255])]))
  })

  it('tells null from empty text, and says whether there is a null', () => {
    const column = texts<string | null>(value => value)
    expect(arrayParameter(column, ['é', ''])).toEqual(
      Buffer.concat([head(25, 2), Buffer.from([0, 0, 0, 2, 0xc3, 0xa9, 0, 0, 0, 0])]),
    )
    expect(arrayParameter(column, [null, 'a'])).toEqual(
      Buffer.concat([head(25, 2, 1), Buffer.from([255, 255, 255, 255, 0, 0, 0, 1, 97])]),
    )
    // A null in one array says nothing about the next.
    const writer = new BinaryWriter()
    writeArray(writer, column, [null])
    writer.start()
    writeArray(writer, column, ['a'])
    expect(writer.written()).toEqual(arrayParameter(column, ['a']))
  })

  it('is the value alone for one item', () => {
    expect(
      parameter(
        texts<string | null>(value => value),
        null,
      ),
    ).toBeNull()
    expect(
      parameter(
        texts<string | null>(value => value),
        '',
      ),
    ).toEqual(Buffer.alloc(0))
    expect(
      parameter(
        uuids<string>(text => text),
        id,
      )?.toString('hex'),
    ).toBe(id.replaceAll('-', ''))
  })

  it.each(['', 'x', `${id}0`, id.slice(1), id.replace('0', 'g'), `${id.slice(0, -1)}é`])(
    'refuses %j as a uuid',
    text => {
      expect(() =>
        parameter(
          uuids<string>(value => value),
          text,
        ),
      ).toThrow(expect.objectContaining({ code: 'invariant' }))
    },
  )

  it.each([id, id.toUpperCase()])('knows %j for a uuid', text => expect(isUuid(text)).toBe(true))

  it.each([
    '',
    'a,b',
    `${id}0`,
    id.slice(1),
    id.replaceAll('-', ''),
    id.replace('-', '0'),
    id.replace('0', 'g'),
    id.replace('0', '-'),
  ])('knows that %j is none', text => expect(isUuid(text)).toBe(false))

  it('grows with what is written, and starts again with what it had before', () => {
    const writer = new BinaryWriter(8)
    const column = byteas<Uint8Array>(value => value)
    for (const size of [1, 100, 3_000_000, 1]) {
      const value = Buffer.alloc(size, size % 251)
      writer.start()
      writeArray(writer, column, [value, value])
      expect(writer.written().equals(arrayParameter(column, [value, value]))).toBe(true)
    }
  })
})
