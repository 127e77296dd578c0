import { expect, it } from 'vitest'
import { type Column, messageWriter } from './message.ts'

const column: Column<string> = { type: 'bytea', of: text => text }

it('writes Bind and Execute for each statement and one Sync, each with its own length', () => {
  const writer = messageWriter(1_000)
  writer.add('first', [column, column], ['a', 'bcd'])
  writer.add('second', [column], ['é'])
  expect(tagsOf(writer.finish())).toEqual(['B', 'E', 'B', 'E', 'S'])
  writer.add('third', [column], [])
  expect(tagsOf(writer.finish())).toEqual(['B', 'E', 'S'])
})

it('throws when a message does not fit, and never cuts one short', () => {
  const written = (length: number) => {
    const writer = messageWriter(300)
    writer.add('first', [column], ['é'.repeat(length)])
    return writer.finish().length - 2 * length
  }
  const around = written(0)
  for (let length = 1; length < 300; length++) {
    if (around + 2 * length <= 300) expect(written(length)).toBe(around)
    else expect(() => written(length)).toThrow(RangeError)
  }
})

/** The tag of each message, by the lengths that they state. */
function tagsOf(bytes: Buffer): string[] {
  const tags: string[] = []
  for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1))
    tags.push(bytes.toString('latin1', at, at + 1))
  return tags
}
