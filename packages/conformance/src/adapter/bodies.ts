/** Bodies of every kind come back byte for byte, however they were sent. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AdapterCase, AdapterHarness, HandlerReply } from '../adapter-harness.ts'
import { answer, assertReplay, counted, created, noise, withApp, route } from './fixture.ts'

const rerun = { onFailure: 'rerun' } as const

/** Sends twice; the second response replays the first, and the handler ran once. */
async function twice(
  harness: AdapterHarness,
  reply: HandlerReply,
  check: (body: Buffer, status: number) => void,
): Promise<void> {
  const count = counted()
  await withApp(
    harness,
    latchkey => [route(latchkey.guarded('orders.create', rerun), reply, { count })],
    async ({ post }) => {
      const first = await post('/orders', { key: 'k', body: { sku: 1 } })
      check(first.body, first.status)
      assertReplay(first, await post('/orders', { key: 'k', body: { sku: 1 } }))
      assert.equal(count.runs, 1)
    },
  )
}

const chunks = [Buffer.from('one '), Buffer.from([0, 255, 254]), Buffer.from(' three')]

export const bodyCases: readonly AdapterCase[] = [
  {
    name: 'runs a repeated POST once and gives the second caller the same bytes',
    run: harness =>
      twice(harness, created(1), (body, status) => assert.deepEqual([status, body.toString()], [201, '{"order":1}'])),
  },
  ...[200, 204, 205, 304].map((status): AdapterCase => ({
    name: `replays a ${status} without a body`,
    run: harness => twice(harness, answer(status), (body, got) => assert.deepEqual([got, body.length], [status, 0])),
  })),
  {
    name: 'replays bytes that are no text, byte for byte',
    run(harness) {
      const bytes = Buffer.concat([Buffer.from([0, 1, 0xc3, 0x28, 0xff, 0xed, 0xa0, 0x80]), noise(64)])
      return twice(harness, answer(200, bytes, [['Content-Type', 'application/octet-stream']]), body =>
        assert.deepEqual(body, bytes),
      )
    },
  },
  {
    name: 'replays a JSON body with __proto__ and surrogate pairs as it was written',
    run(harness) {
      const text = '{ "__proto__": {"a": 1}, "b": "\u{1f511}", "a": 1.0 }'
      return twice(harness, answer(200, text, [['Content-Type', 'application/json']]), body =>
        assert.equal(body.toString(), text),
      )
    },
  },
  {
    name: 'replays 900 KB byte for byte',
    run(harness) {
      const bytes = noise(900 * 1024)
      return twice(harness, answer(200, bytes, [['Content-Type', 'application/octet-stream']]), body =>
        assert.ok(body.equals(bytes)),
      )
    },
  },
  {
    name: 'replays a response that was written in chunks',
    needs: ['stream'],
    run: harness =>
      twice(
        harness,
        { kind: 'stream', status: 200, headers: [['Content-Type', 'application/octet-stream']], chunks, breaks: false },
        body => assert.deepEqual(body, Buffer.concat(chunks)),
      ),
  },
  {
    name: 'replays a large piped stream whole',
    needs: ['pipe'],
    run(harness) {
      const bytes = noise(700 * 1024)
      return twice(harness, { kind: 'pipe', status: 200, headers: [], body: bytes }, body =>
        assert.ok(body.equals(bytes)),
      )
    },
  },
  {
    name: 'replays a file that the framework sent',
    needs: ['file'],
    async run(harness) {
      const folder = await mkdtemp(join(tmpdir(), 'latchkey-file-'))
      const bytes = noise(300 * 1024)
      const path = join(folder, 'report.bin')
      await writeFile(path, bytes)
      try {
        await twice(harness, { kind: 'file', status: 200, headers: [], path }, body => assert.ok(body.equals(bytes)))
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  },
]
