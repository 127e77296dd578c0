/** The routes over a store in memory, with one payment that is unknown. */
import { adminRoutes, type AdminRoutesOptions, type Person } from '../../src/admin/index.ts'
import { createLatchkey, silentTelemetry } from '../../src/index.ts'
import { memoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'
import { type FakeClock, fakeClock } from '../engine/fake-clock.ts'

export const host = 'ops.example.com'

export const people: Readonly<Record<string, Person>> = {
  ann: { name: 'ann', role: 'operator' },
  bea: { name: 'bea', role: 'approver' },
  carl: { name: 'carl', role: 'approver' },
  vic: { name: 'vic', role: 'viewer' },
  lim: { name: 'lim', role: 'approver', limitScopes: ['other'] },
}

/** By cookie, by Basic or by Bearer: each carries the name. */
export function authorize({ headers }: Request): Person | null {
  const basic = /^Basic (.+)$/.exec(headers.get('authorization') ?? '')?.[1]
  const name =
    /session=(\w+)/.exec(headers.get('cookie') ?? '')?.[1] ??
    /^Bearer (\w+)$/.exec(headers.get('authorization') ?? '')?.[1] ??
    (basic === undefined ? undefined : Buffer.from(basic, 'base64').toString().split(':')[0])
  return (name === undefined ? undefined : people[name]) ?? null
}

export interface Sent {
  readonly who?: string
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** What an answer says, by name: tests look at what they expect, and at nothing else. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Shown = any

export interface Api {
  readonly clock: FakeClock
  readonly store: ReturnType<typeof memoryStore>
  readonly id: string
  send(path: string, sent?: Sent): Promise<{ status: number; headers: Headers; body: Shown; text: string }>
  /** With a key and the version that the row has now. */
  act(who: string, path: string, body: object, headers?: Readonly<Record<string, string>>): ReturnType<Api['send']>
  version(): Promise<string>
}

let keys = 0

export async function openApi(over: Partial<AdminRoutesOptions<MemoryTx>> = {}): Promise<Api> {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const latchkey = createLatchkey({ store, scope: () => 'acme', clock, maintenance: false, telemetry: silentTelemetry })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  await pay
    .run({ scope: 'acme', key: 'k', input: 1 }, async x => {
      await x.reference('ch_1')
      throw new Error('read timeout')
    })
    .catch(() => {})
  const id = latchkey.identify({ scope: 'acme', operation: 'pay', key: 'k' })
  const handler = adminRoutes({ latchkey, authorize, hosts: [host], ...over })
  const send: Api['send'] = async (path, { who = 'bea', method = 'GET', body, headers = {} } = {}) => {
    const isBare = method === 'GET' || method === 'HEAD'
    const response = await handler(
      new Request(`http://${host}/admin/api/v1/${path}`, {
        method,
        headers: {
          host,
          authorization: `Bearer ${who}`,
          ...(isBare ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(isBare || body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    )
    const text = await response.text()
    const isJson = text !== '' && /[/+]json$/.test(response.headers.get('content-type') ?? '')
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
  }
  const version = async () => (await send(`keys/${id}`)).body.version as string
  return {
    ...{ clock, store, id, send, version },
    async act(who, path, body, headers = {}) {
      keys += 1
      const given = { 'idempotency-key': `"k${keys}"`, 'if-match': `"${await version()}"`, ...headers }
      return send(path, { who, method: 'POST', body, headers: given })
    },
  }
}
