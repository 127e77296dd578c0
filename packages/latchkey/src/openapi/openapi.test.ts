import { Validator } from '@seriousme/openapi-schema-validator'
import { Hono, type Context } from 'hono'
import { describe, expect, it } from 'vitest'
import { createLatchkey } from '../engine/latchkey.ts'
import { json } from '../engine/steps/json.ts'
import { idempotent } from '../http/hono/index.ts'
import { LatchkeyError } from '../ports/errors.ts'
import type { Store } from '../ports/store.ts'
import { memoryStore } from '../stores/memory/index.ts'
import { openapi } from './index.ts'

const hour = 3_600_000

function shop(over: Partial<Store> = {}) {
  const store = { ...memoryStore(), ...over }
  const scope = (c: Context) => c.req.header('x-tenant') ?? ''
  const latchkey = createLatchkey<unknown, Context>({
    store,
    scope,
    telemetry: { count() {}, observe() {}, report() {} },
  })
  const pay = latchkey.guarded('payments.create', {
    onFailure: 'hold',
    keyFormat: 'uuid',
    authorizeReplay: c => c.req.header('x-role') !== 'guest',
    onExpiry: 'gone',
    bodyBytesMax: 1_000,
    outcomeBytesMax: 100,
  })
  const order = latchkey.atomic('orders.create', {
    key: { header: 'PayPal-Request-Id' },
    onInProgress: 'wait',
  })
  const cart = latchkey.guarded('carts.update', { onFailure: 'rerun', onMissingKey: 'run-unprotected' })
  const build = latchkey.deferred('exports:build', { deadlineMs: hour, key: () => undefined }, async () =>
    json(200, {}),
  )
  return { latchkey, pay, order, cart, build }
}

describe('openapi', () => {
  it('makes a valid OpenAPI 3.1 document of the declared operations', async () => {
    const { operations, components } = openapi(shop().latchkey)
    const paths = Object.fromEntries(
      Object.entries(operations).map(([name, operation]) => [
        `/${name}`,
        { post: { ...operation, responses: { '201': { description: 'Created' }, ...operation.responses } } },
      ]),
    )
    const document = { openapi: '3.1.0', info: { title: 'Shop', version: '1' }, paths, components }
    const { valid, errors } = await new Validator().validate(document)
    expect(errors ?? []).toEqual([])
    expect(valid).toBe(true)
    // Every reference leads to a component.
    for (const [, kind = '', name = ''] of JSON.stringify(document).matchAll(/#\/components\/(\w+)\/([\w.-]+)/g))
      expect(components).toHaveProperty([kind, name])
  })

  it('says what each operation declares', () => {
    const { operations, components } = openapi(shop().latchkey)
    expect(operations['payments.create']?.['x-latchkey']).toEqual({
      kind: 'guarded',
      key: expect.objectContaining({
        in: 'header',
        name: 'Idempotency-Key',
        required: true,
        text: 'The key is a UUID.',
      }),
      methods: ['POST', 'PATCH'],
      retentionSeconds: 86_400,
      tombstoneSeconds: 30 * 86_400,
      onInProgress: 'refuse',
      bodyBytesMax: 1_000,
    })
    expect(components.parameters['IdempotencyKey.orders.create']).toMatchObject({
      name: 'PayPal-Request-Id',
      required: true,
    })
    expect(components.parameters['IdempotencyKey.carts.update']).toMatchObject({ required: false })
    expect(operations['exports:build']).toMatchObject({ parameters: [], 'x-latchkey': { key: { in: 'request' } } })
    expect(Object.keys(operations['exports:build']?.responses ?? {})).toEqual([
      '202',
      '400',
      '408',
      '410',
      '413',
      '415',
      '422',
      '500',
      '503',
    ])
    expect(codesOf(operations['carts.update'])).not.toContain('400 missing-key')
    expect(codesOf(operations['orders.create'])).toContain('500 transaction-rolled-back')
  })

  it('documents every answer that a server gives', async () => {
    const { latchkey, seen, ask, release, setDown } = server()
    const keys = Array.from({ length: 9 }, () => crypto.randomUUID())
    await ask(undefined, '{"amount":5}')
    await ask('order-7', '{"amount":5}')
    await ask(keys[0], '{"amount":5}', { 'x-tenant': '' })
    await ask(keys[0], '{"amount":5}')
    await ask(keys[0], '{"amount":6}')
    await ask(keys[0], '{"amount":5}', { 'x-role': 'guest' })
    await ask(keys[1], `{"amount":5,"note":"${'x'.repeat(2_000)}"}`)
    const first = ask(keys[2], '{"amount":1}')
    await new Promise(resolve => setTimeout(resolve, 50))
    await ask(keys[2], '{"amount":1}')
    release()
    await first
    await ask(keys[3], '{"amount":2}')
    await ask(keys[3], '{"amount":2}')
    await ask(keys[4], '{"amount":3}')
    await ask(keys[4], '{"amount":3}')
    setDown()
    await ask(keys[5], '{"amount":5}')
    await latchkey.close()

    const own = seen.filter(answer => !answer.startsWith('2'))
    expect(new Set(own)).toEqual(
      new Set([
        '400 missing-key',
        '400 invalid-key',
        '500 scope-unresolved',
        '422 key-reused',
        '403 replay-not-authorized',
        '413 body-too-large',
        '409 in-progress',
        '504 outcome-unknown',
        '409 outcome-unknown',
        '410 response-not-stored',
        '503 store-unavailable',
      ]),
    )
    const documented = codesOf(openapi(latchkey).operations['payments.create'])
    for (const answer of own) expect(documented).toContain(answer)
    for (const answer of own) {
      const [status, code] = answer.split(' ')
      expect(openapi(latchkey).markdown).toContain(`| ${status} | \`${code}\` |`)
    }
  })

  it('writes a section for each operation', () => {
    const { markdown } = openapi(shop().latchkey)
    expect(markdown.match(/^## .*$/gm)).toEqual([
      '## payments.create',
      '## orders.create',
      '## carts.update',
      '## exports:build',
    ])
    expect(markdown).toContain('The answer is stored for 24 hours, and every retry gets it')
    expect(markdown).toContain('For another 30 days the key is refused with 410.')
    expect(markdown).toContain('waits for its answer, for at most 10 seconds')
    expect(markdown).toContain('Work that has not begun within 1 hour ends with 408.')
  })

  it('follows the profile of the Latchkey', () => {
    const latchkey = createLatchkey({ store: memoryStore(), scope: () => 'a', http: { profile: 'stripe' } })
    latchkey.guarded('payments.create', { onFailure: 'hold' })
    const { operations, components } = openapi(latchkey)
    expect(codesOf(operations['payments.create'])).toContain('400 key-reused')
    expect(components.schemas['LatchkeyProblem']).toMatchObject({ required: ['error'] })
  })
})

/** A server on `payments.create`, and what it has answered: its status, and the code of a problem. */
function server() {
  const real = memoryStore()
  const seen: string[] = []
  let isDown = false
  let release = () => {}
  const claim: Store['claim'] = request =>
    isDown ? Promise.reject(new LatchkeyError('store-unavailable', 'away')) : real.claim(request)
  const { latchkey, pay } = shop({ ...real, claim })
  const app = new Hono()
  app.post('/payments', idempotent(pay), async c => {
    const { amount } = await c.req.json<{ amount: number }>()
    if (amount === 1) await new Promise<void>(resolve => (release = resolve))
    if (amount === 2) throw new Error('no answer')
    return c.json({ amount, more: 'x'.repeat(amount === 3 ? 200 : 0) }, 201)
  })
  app.onError((_, c) => c.text('failed', 500))
  return {
    latchkey,
    seen,
    release: () => release(),
    setDown: () => void (isDown = true),
    async ask(key: string | undefined, body: string, headers: Record<string, string> = {}) {
      const keyed = key === undefined ? {} : { 'idempotency-key': key }
      const response = await app.request('/payments', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-tenant': 'acme', ...keyed, ...headers },
        body,
      })
      // Read in any case: a large answer is stored when its client has taken it.
      const { type = '' } = (await response.json()) as { type?: string }
      seen.push(`${response.status} ${type.replace('urn:latchkey:problem:', '')}`)
    },
  }
}

/** `status code`, as the descriptions name them. */
function codesOf(operation: { readonly responses: Readonly<Record<string, object>> } | undefined): string[] {
  return Object.entries(operation?.responses ?? {}).flatMap(([status, response]) =>
    [...('description' in response ? String(response.description) : '').matchAll(/^`([\w-]+)`:/gm)].map(
      ([, code]) => `${status} ${code}`,
    ),
  )
}
