/** A store without operators' tables: whether a payment happened can be asked all the same, and nobody acts. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLatchkey, json, type LatchkeyWithoutTransactions, silentTelemetry, singleTenant } from 'latchkey'
import type { AdminKey, AdminRow } from 'latchkey/admin'
import { redisStore } from 'latchkey/stores/redis'
import { describeRedis } from '../../../test/servers/redis/describe-redis.ts'
import { startRedis } from '../../../test/servers/redis/redis-server.ts'
import { reason } from './desk.ts'
import { useProgram } from './program.ts'

describeRedis('the commands on Redis', own => {
  const program = useProgram()
  let client: Redis
  let latchkey: LatchkeyWithoutTransactions<unknown>
  const ids = { paid: '', unknown: '', charged: '' }
  const env = () => ({ LATCHKEY_STORE: own.server.url })
  const run = (args: readonly string[], input?: string) =>
    program.run(args, { env: env(), ...(input === undefined ? {} : { input }) })

  beforeAll(async () => {
    client = new Redis(own.server.url)
    const store = redisStore({ client })
    latchkey = createLatchkey({ store, scope: singleTenant, telemetry: silentTelemetry, maintenance: false })
    const pay = latchkey.guarded('payments.create', { onFailure: 'hold', describe: () => '€ 50.00' })
    const ship = latchkey.phased('parcels.send', { version: 1, steps: 'effects' }, async (x, _input: number) =>
      json(201, await x.effect('send', { timeoutMs: 5_000 }, () => Promise.reject(new Error('no answer came')))),
    )
    const request = (key: string) => ({ scope: 'acme', key, input: 1 })
    await pay.run(request('order-7'), () => ({ id: 'ch_7' }))
    await pay.run(request('order-8'), () => Promise.reject(new Error('no answer came'))).catch(() => {})
    await ship.run(request('order-9')).catch(() => {})
    const idOf = (operation: string, key: string) => latchkey.identify({ scope: 'acme', operation, key })
    ids.paid = idOf('payments.create', 'order-7')
    ids.unknown = idOf('payments.create', 'order-8')
    ids.charged = idOf('parcels.send', 'order-9')
  })
  afterAll(async () => {
    await latchkey.close()
    client.disconnect()
  })

  const find = (key: string) => run(['key', 'find', '--scope', 'acme', '--operation', 'payments.create'], key)

  it('finds a row by scope, operation and key', async () => {
    expect(await find('order-7')).toMatchObject({ code: 0, stdout: expect.stringContaining(`${ids.paid}  completed`) })
    expect(await find('order-8')).toMatchObject({ code: 0, stdout: expect.stringContaining(`${ids.unknown}  unknown`) })
    expect(await find('order-of-nobody')).toMatchObject({ code: 3, stderr: expect.stringContaining('no such row') })
  })

  it('says that references are not recorded', async () => {
    expect(await run(['key', 'find', '--reference', 'ch_7'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the redis store has no references'),
    })
  })

  it('shows a completed row, and that nobody may act on it here', async () => {
    const { stdout } = await run(['key', 'show', ids.paid, '--timeline'])
    expect(stdout).toMatch(/state +completed\n/)
    expect(stdout).toMatch(/you may +view\n/)
    expect(stdout).toMatch(/not +take, .*forget.*: the redis store has no operators’ tables .*latchkey\.settle/)
    expect(stdout).toMatch(/completed\n/)
    expect(stdout.match(/^not /gm)).toHaveLength(1)
  })

  it('shows an unknown row with its open effect, and leaves out what the store does not know', async () => {
    const key = await program.json<AdminKey>(['key', 'show', ids.charged], { env: env() })
    expect(key).toMatchObject({ state: 'unknown', effect: 'send', openEffect: { name: 'send' }, may: ['view'] })
    expect(key).not.toHaveProperty('waitsForMs')
    expect(key).not.toHaveProperty('quarantineLeftMs')
  })

  it('shows in the timeline what the application settled', async () => {
    const refund = latchkey.guarded('refunds.create', { onFailure: 'hold' })
    await refund.run({ scope: 'acme', key: 'r-1', input: 1 }, () => Promise.reject(new Error('lost'))).catch(() => {})
    const id = latchkey.identify({ scope: 'acme', operation: 'refunds.create', key: 'r-1' })
    const act = { by: 'ann', reason: 'seen in the dashboard' }
    await latchkey.settle({ id }, { kind: 'happened', status: 201, json: { id: 're_1' } }, act)
    const { stdout } = await run(['key', 'show', id, '--timeline'])
    expect(stdout).toMatch(/state +completed\n/)
    expect(stdout).toMatch(/act +settle by ann: seen in the dashboard/)
  })

  it('lists unknown rows, by operation and scope', async () => {
    const listed = async (...filter: string[]) =>
      (await program.json<readonly AdminRow[]>(['unknown', 'list', ...filter], { env: env() })).map(({ id }) => id)
    expect((await listed()).toSorted()).toEqual([ids.unknown, ids.charged].toSorted())
    expect(await listed('--operation', 'parcels.send')).toEqual([ids.charged])
    expect(await listed('--scope', 'nobody')).toEqual([])
    expect((await run(['unknown', 'list'])).stdout).toContain('parcels.send / send')
  })

  it('pages through them', async () => {
    const { stdout, stderr } = await run(['unknown', 'list', '--limit', '1', '--jsonl'])
    expect(stdout.trim().split('\n')).toHaveLength(1)
    expect(stderr).toContain('there are more')
  })

  it('refuses what only operators’ tables could answer, and says so', async () => {
    const refused = { code: 2, stderr: expect.stringContaining('the redis store has no operators’ tables') }
    expect(await run(['unknown', 'list', '--older-than', '1h'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('by operation and scope, not by age'),
    })
    for (const command of [['unknown', 'list', '--group-by', 'cause'], ['status'], ['audit']])
      expect(await run(command)).toMatchObject(refused)
    expect(await run(['unknown', 'list', '--fail-older-than', '1h'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('does not say since when'),
    })
  })

  it.each([
    { act: 'settle', flags: ['--happened', '--reference', 'ch_8', '--status', '201', '--response', '{}'] },
    { act: 'settle', flags: ['--happened', '--reference', 'ch_8', '--dry-run'] },
    { act: 'parked resume', flags: [] },
    { act: 'unknown look-up', flags: [] },
    { act: 'key forget', flags: [] },
  ])('refuses $act $flags, says why and what to do, and changes nothing', async ({ act, flags }) => {
    const { code, stderr } = await run([...act.split(' '), ids.unknown, ...flags, '--yes', ...reason])
    expect(stderr).toContain(
      'its rows cannot be changed from here. Settle a row in your application, with latchkey.settle',
    )
    expect(code).toBe(2)
    expect(await latchkey.inspect({ id: ids.unknown })).toMatchObject({ record: { state: 'unknown', parked: false } })
  })

  it('has nothing to migrate', async () => {
    expect(await run(['migrate'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('redis has no tables: there is nothing to migrate'),
    })
  })

  it('finds a server that keeps what it is given fit', async () => {
    const { code, stdout } = await run(['doctor'])
    expect(stdout).toMatch(/ok +store +fit for use/)
    expect(code).toBe(0)
  })

  it('fails the doctor on a server that may evict keys, and names the setting', async () => {
    const evicting = await startRedis({ maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' })
    try {
      const { code, stdout } = await run(['doctor', '--store', evicting.url])
      expect(stdout).toMatch(/FAIL +store .*maxmemory-policy allkeys-lru.*Set maxmemory-policy noeviction/)
      expect(code).toBe(1)
    } finally {
      await evicting.stop()
    }
  })
})
