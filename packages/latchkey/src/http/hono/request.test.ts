import { type Context, Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { honoView } from './request.ts'

/** What a handler reads behind Latchkey, and what it reads without. */
async function bothWays<T>(body: Uint8Array<ArrayBuffer>, read: (c: Context) => Promise<T>): Promise<[T, T]> {
  const seen: T[] = []
  const app = new Hono()
  app.post('/covered', async c => {
    await honoView(c).body(100_000)
    seen.push(await read(c))
    return c.body(null)
  })
  app.post('/plain', async c => {
    seen.push(await read(c))
    return c.body(null)
  })
  for (const path of ['/covered', '/plain']) await app.request(path, { method: 'POST', body })
  expect(seen).toHaveLength(2)
  return seen as [T, T] // just counted
}

const bodies: [string, Uint8Array<ArrayBuffer>][] = [
  ['JSON', new Uint8Array(Buffer.from('{"tea":"☕"}'))],
  ['a byte order mark', new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d])],
  ['bytes that are not UTF-8', new Uint8Array([0x22, 0xff, 0xe2, 0x82, 0x22])],
  ['nothing', new Uint8Array()],
  ['a large text', new Uint8Array(Buffer.from(`"${'a'.repeat(40_000)}"`))],
]

describe('a body that Latchkey has read', () => {
  it.each(bodies)('is the same to the handler as without: %s', async (_, body) => {
    const text = await bothWays(body, c => c.req.text())
    expect(text[0]).toBe(text[1])
    const bytes = await bothWays(body, async c => new Uint8Array(await c.req.arrayBuffer()))
    expect(bytes[0]).toEqual(bytes[1])
    const blob = await bothWays(body, async c => new Uint8Array(await (await c.req.blob()).arrayBuffer()))
    expect(blob[0]).toEqual(blob[1])
    const json = await bothWays(body, c => c.req.json().catch(() => 'no JSON'))
    expect(json[0]).toEqual(json[1])
  })

  it('is read in full behind a validator that took its text', async () => {
    const app = new Hono()
    app.post('/', async c => {
      await c.req.json()
      return c.json(await honoView(c).body(100))
    })
    const response = await app.request('/', { method: 'POST', body: '{"tea":"☕"}' })
    expect(await response.json()).toEqual({ kind: 'bytes', bytes: Buffer.from('{"tea":"☕"}').toJSON() })
  })
})
