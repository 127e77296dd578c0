import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createLatchkey } from '../../../engine/latchkey.ts'
import { engine } from '../../../engine/internal.ts'
import { silentTelemetry } from '../../../ports/telemetry.ts'
import { memoryStore } from '../../../stores/memory/index.ts'
import { observeReplay, renderReplay } from './replay.ts'

const plain = Buffer.from('a line that compresses. '.repeat(50))

function stored(coding: string, body: Uint8Array) {
  return {
    status: 200,
    headers: [
      ['Content-Encoding', coding],
      ['ETag', '"v1"'],
    ] as const,
    body,
  }
}

describe('replaying encoded bytes', () => {
  it.each([
    ['gzip', gzipSync(plain)],
    ['x-gzip', gzipSync(plain)],
    ['deflate', deflateSync(plain)],
    ['deflate', deflateRawSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['gzip, br', brotliCompressSync(gzipSync(plain))],
  ])('decodes %s for a client that wants none of it, and weakens the validator', async (coding, bytes) => {
    const answer = await renderReplay(stored(coding, bytes), 'identity')
    expect(Buffer.from(answer.body)).toEqual(plain)
    expect(answer.headers).toEqual([
      ['ETag', 'W/"v1"'],
      ['Idempotent-Replayed', 'true'],
      ['Cache-Control', 'no-store'],
    ])
  })

  it.each([
    ['a coding it does not know', 'zstd', plain],
    ['bytes that are not what they claim', 'gzip', plain],
    ['bytes that grow past all measure', 'gzip', gzipSync(Buffer.alloc(17 * 1_048_576))],
  ])('sends %s as they are stored', async (_, coding, bytes) => {
    const answer = await renderReplay(stored(coding, bytes), 'identity')
    expect(Buffer.from(answer.body).equals(bytes)).toBe(true)
    expect(answer.headers).toContainEqual(['Content-Encoding', coding])
    expect(answer.headers).toContainEqual(['ETag', '"v1"'])
  })

  it('sends them as they are stored to a client that says nothing', async () => {
    const bytes = gzipSync(plain)
    expect((await renderReplay(stored('gzip', bytes), undefined)).body).toBe(bytes)
  })
})

describe('an observer of replays', () => {
  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['rejects', () => Promise.reject(new Error('late'))],
  ])('is reported where it %s', async (_, onReplay) => {
    const reports: unknown[] = []
    const telemetry = { ...silentTelemetry, report: (...report: unknown[]) => void reports.push(report) }
    const store = memoryStore()
    const latchkey = createLatchkey({ store, scope: () => 'acme', http: { onReplay }, telemetry })
    const orders = latchkey.guarded('orders.create', { onFailure: 'rerun' })
    await orders.run({ scope: 'acme', key: 'k', input: 1 }, () => 'first')
    const [record] = (await store.list({ limit: 1 })).records
    if (record === undefined || record.state === 'unreadable') throw new Error('no such row')
    observeReplay(orders[engine], undefined, record)
    await Promise.resolve()
    await Promise.resolve()
    expect(reports).toEqual([['onReplay failed', { operation: 'orders.create', error: expect.any(Error) }]])
    await latchkey.close()
  })
})
