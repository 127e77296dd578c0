import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { isLatchkeyError } from 'latchkey'
import type { Fault } from '../src/charge.ts'
import { type Provider, startProvider } from '../src/provider-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-provider-test-'))
const ledger = join(directory, 'ledger.jsonl')
let provider: Provider
let count = 0

beforeAll(async () => {
  provider = await startProvider(ledger)
})
afterEach(async () => {
  await provider.setFault(null)
  await provider.setIdempotency(true)
})
afterAll(async () => {
  await provider.stop()
  rmSync(directory, { recursive: true, force: true })
})

const newKey = () => `key-${count++}`
const charge = (key: string, timeoutMs = 20_000) =>
  provider.charge({ key, account: 'acme', amount: 5, reference: `r-${key}` }, AbortSignal.timeout(timeoutMs))
const charged = async (key: string) => (await provider.charges()).filter(known => known.key === key).length
/** How the shop sees a charge that did not come back. */
const failure = (key: string, timeoutMs?: number) =>
  charge(key, timeoutMs).then(
    () => 'charged',
    (error: unknown) => (isLatchkeyError(error) ? error.code : String(error)),
  )

describe('the payment provider', () => {
  it('gives a known key its first charge, and has it in its file before it answers', async () => {
    const key = newKey()
    const first = await charge(key)
    expect(readFileSync(ledger, 'utf8')).toContain(`"key":"${key}"`)
    expect(await charge(key)).toEqual(first)
    expect(first.reference).toBe(`r-${key}`)
  })

  it('charges again while its idempotency is off', async () => {
    await provider.setIdempotency(false)
    const key = newKey()
    expect((await charge(key)).id).not.toBe((await charge(key)).id)
  })

  it.each<[Fault['kind'], string, number]>([
    ['lose-response', 'outcome-unknown', 1],
    ['fail-after', 'outcome-unknown', 1],
    ['refuse', 'not-executed', 0],
  ])('%s: the shop sees %s, and the ledger has %i charge', async (kind, seen, charges) => {
    await provider.setFault({ kind, requests: 1 })
    const key = newKey()
    expect(await failure(key)).toBe(seen)
    expect(await charged(key)).toBe(charges)
    expect(await failure(key)).toBe('charged')
    expect(await charged(key)).toBe(1)
  })

  it('refuses connections while it is down, and listens again at the same address', async () => {
    await provider.setFault({ kind: 'down' })
    expect(await failure(newKey())).toBe('not-executed')
    await provider.setFault(null)
    expect(await until(() => failure(newKey()), 'charged')).toBe('charged')
    await provider.setFault({ kind: 'down', ms: 200 })
    expect(await until(() => failure(newKey()), 'charged')).toBe('charged')
  })

  it('charges late: after the shop gave up', async () => {
    await provider.setFault({ kind: 'late', ms: 50, requests: 1 })
    const key = newKey()
    expect(await failure(key, 300)).toBe('outcome-unknown')
    expect(await until(() => charged(key), 1)).toBe(1)
  })

  it('is slow as long as it is told, and charges', async () => {
    await provider.setFault({ kind: 'slow', ms: 200 })
    const startedMs = performance.now()
    await charge(newKey())
    expect(performance.now() - startedMs).toBeGreaterThan(190)
  })

  it('refuses a fault that it does not know', async () => {
    const unknown = { kind: 'on-fire' } as unknown as Fault
    await expect(provider.setFault(unknown)).rejects.toThrow('on-fire')
  })
})

async function until<T>(ask: () => Promise<T>, wanted: T): Promise<T> {
  const endMs = performance.now() + 20_000
  for (;;) {
    const value = await ask()
    if (value === wanted || performance.now() > endMs) return value
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
