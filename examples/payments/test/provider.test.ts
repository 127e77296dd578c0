import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { isLatchkeyError } from 'latchkey'
import { standardWebhooks } from 'latchkey/reconcile'
import type { Fault } from '../src/charge.ts'
import { type Provider, startProvider } from '../src/provider-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-provider-test-'))
const ledger = join(directory, 'ledger.jsonl')
const secret = `whsec_${Buffer.from('a secret of these tests alone').toString('base64')}`
let provider: Provider
let count = 0

beforeAll(async () => {
  provider = await startProvider(ledger)
})
afterEach(async () => {
  await provider.setFault(null)
  await provider.setIdempotency(true)
  await provider.setWebhook(null)
  await provider.setBooks(true)
})
afterAll(async () => {
  await provider.stop()
  rmSync(directory, { recursive: true, force: true })
})

const newKey = () => `key-${count++}`
const ask = (key: string, { timeoutMs = 20_000, dedup = true, at = provider } = {}) =>
  at.charge({ key, account: 'acme', amount: 5, reference: `r-${key}`, dedup }, AbortSignal.timeout(timeoutMs))
const charge = async (key: string, options?: Parameters<typeof ask>[1]) => {
  const answer = await ask(key, options)
  if ('declined' in answer) throw new Error('declined')
  return answer
}
const charged = async (key: string) => (await provider.charges()).filter(known => known.key === key).length
/** How the shop sees a charge, also one that did not come back. */
const failure = (key: string, timeoutMs?: number) =>
  ask(key, timeoutMs === undefined ? {} : { timeoutMs }).then(
    answer => ('declined' in answer ? 'declined' : 'charged'),
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

  it.each<Fault['kind']>(['lose-response', 'fail-after'])(
    '%s: the shop does not know, and the ledger has one charge',
    async kind => {
      await provider.setFault({ kind, requests: 1 })
      const key = newKey()
      expect(await failure(key)).toBe('outcome-unknown')
      expect(await charged(key)).toBe(1)
      expect(await failure(key)).toBe('charged')
      expect(await charged(key)).toBe(1)
    },
  )

  it.each<Fault['kind']>(['slow', 'late'])(
    'never charges for a key that it declined, also not for a request that came before and was %s',
    async kind => {
      const key = newKey()
      // Long enough for a slow machine to decline meanwhile.
      const waitsMs = 1_500
      await provider.setFault({ kind, ms: waitsMs, requests: 1 })
      expect(await failure(key, 100)).toBe('outcome-unknown')
      await provider.setFault({ kind: 'refuse', requests: 1 })
      expect(await failure(key)).toBe('declined')
      await new Promise(resolve => setTimeout(resolve, waitsMs + 200))
      expect(await charged(key)).toBe(0)
      expect(await failure(key)).toBe('declined')
    },
  )

  it('declines nothing that it charged', async () => {
    const key = newKey()
    await charge(key)
    await provider.setFault({ kind: 'refuse', requests: 1 })
    expect(await failure(key)).toBe('charged')
  })

  it('keeps to a refusal when it is started again', async () => {
    const file = join(directory, 'restarted.jsonl')
    const [declined, paid] = [newKey(), newKey()]
    const before = await startProvider(file)
    await before.setFault({ kind: 'refuse', requests: 1 })
    expect(await ask(declined, { at: before })).toEqual({ declined: true })
    const first = await charge(paid, { at: before })
    await before.stop()
    const after = await startProvider(file)
    expect(await ask(declined, { at: after })).toEqual({ declined: true })
    expect(await charge(paid, { at: after })).toEqual(first)
    expect(await after.charges()).toEqual([first])
    await after.stop()
  })

  it('binds nothing by a refusal of a request without an idempotency key', async () => {
    const key = newKey()
    await provider.setFault({ kind: 'refuse', requests: 1 })
    expect(await ask(key, { dedup: false })).toEqual({ declined: true })
    expect(await failure(key)).toBe('charged')
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

  it('swallows: no answer, no charge, and still asked', async () => {
    await provider.setFault({ kind: 'swallow', requests: 1 })
    const key = newKey()
    expect(await failure(key, 300)).toBe('outcome-unknown')
    expect(await charged(key)).toBe(0)
    expect((await provider.asked()).filter(asked => asked.key === key)).toMatchObject([{ dedup: true }])
    expect(await failure(key)).toBe('charged')
  })

  it('holds its answer back, and has charged', async () => {
    await provider.setFault({ kind: 'hold', ms: 2_000, requests: 1 })
    const key = newKey()
    let answered = false
    const asked = failure(key).finally(() => (answered = true))
    expect(await until(() => charged(key), 1)).toBe(1)
    expect(answered).toBe(false)
    expect(await asked).toBe('charged')
  })

  it('falls: charges, is down, and comes back by itself; its ledger is there all the time', async () => {
    await provider.setFault({ kind: 'fall', ms: 1_000, requests: 1 })
    const key = newKey()
    expect(await failure(key)).toBe('outcome-unknown')
    expect(await failure(newKey())).toBe('not-executed')
    expect((await provider.ledger()).filter(known => known.key === key)).toHaveLength(1)
    expect(await until(() => failure(newKey()), 'charged')).toBe('charged')
  })

  it('charges as often as it is asked without an idempotency key', async () => {
    const key = newKey()
    const again = () => charge(key, { dedup: false })
    expect((await again()).id).not.toBe((await again()).id)
    expect(await provider.find(key, AbortSignal.timeout(20_000))).toHaveLength(2)
  })

  it('lets nobody look a charge up while its books are closed', async () => {
    await provider.setBooks(false)
    await expect(provider.find(newKey(), AbortSignal.timeout(20_000))).rejects.toThrow('503')
    await expect(provider.charges()).rejects.toThrow('503')
  })

  it('tells of a charge by a signed webhook, and sends it again under the same id until it is taken', async () => {
    const key = newKey()
    const taken = await receiving(async received => {
      await charge(key)
      await until(async () => received.length, 2)
    })
    const verify = standardWebhooks({ secrets: [secret] })
    const verified: unknown[] = []
    for (const { headers, body } of taken) {
      verified.push(await verify({ header: name => headers.get(name) ?? undefined, body, nowMs: Date.now() }))
    }
    expect(verified).toMatchObject([
      { kind: 'genuine', event: { type: 'charge.succeeded', data: { key, reference: `r-${key}` } } },
      { kind: 'genuine', event: { type: 'charge.succeeded', data: { key } } },
    ])
    const [first, second] = taken.map(({ headers }) => headers.get('webhook-id'))
    expect(second).toBe(first)
  })

  it('sends its webhook as late as it is told, and none for a charge that it knew', async () => {
    const [known, fresh] = [newKey(), newKey()]
    // Its own message is taken here: one that nobody takes is sent again, and would reach the next receiver.
    await receiving(
      async received => {
        await charge(known)
        await until(async () => about(known, received).length, 1)
      },
      { status: 200 },
    )
    const taken = await receiving(
      async received => {
        await charge(known)
        const startedMs = performance.now()
        await charge(fresh)
        await until(async () => about(fresh, received).length, 1)
        expect(performance.now() - startedMs).toBeGreaterThan(290)
      },
      { delayMs: 300, status: 200 },
    )
    expect(about(fresh, taken)).toHaveLength(1)
    expect(about(known, taken)).toHaveLength(0)
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

interface Received {
  readonly headers: Headers
  readonly body: Uint8Array
}

/** A shop that takes webhooks; with the default status it refuses the first one. */
async function receiving(
  during: (received: readonly Received[]) => Promise<void>,
  { delayMs = 0, status = 503 } = {},
): Promise<readonly Received[]> {
  const received: Received[] = []
  const shop = createServer((request, response) => {
    void receive(request).then(message => {
      response.writeHead(received.length === 0 ? status : 200).end()
      received.push(message)
    })
  })
  shop.listen(0, '127.0.0.1')
  await once(shop, 'listening')
  try {
    const { port } = shop.address() as AddressInfo
    await provider.setWebhook({ url: `http://127.0.0.1:${port}`, secret, delayMs })
    await during(received)
    return received
  } finally {
    shop.close()
    shop.closeAllConnections()
  }
}

/** A message that an earlier test's receiver did not take may still be on its way. */
function about(key: string, received: readonly Received[]): readonly Received[] {
  return received.filter(({ body }) => JSON.parse(Buffer.from(body).toString()).data.key === key)
}

async function receive(request: IncomingMessage): Promise<Received> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const named = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)])
  return { headers: new Headers(named), body: Buffer.concat(chunks) }
}

async function until<T>(ask: () => Promise<T>, wanted: T): Promise<T> {
  const endMs = performance.now() + 20_000
  for (;;) {
    const value = await ask()
    if (value === wanted || performance.now() > endMs) return value
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
