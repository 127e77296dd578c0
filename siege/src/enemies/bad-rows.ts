/** Rows that are damaged in the server, some as a newer version would write them, and then retried in the batches of the innocents. */
import { Redis } from 'ioredis'
import pg from 'pg'
import { createLatchkey, singleTenant } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { outcomePlace, rowKey } from '../../../test/servers/redis/scan-rows.ts'
import { operations } from '../app/operations.ts'
import { type Attack, inParallel, post, type Target } from './enemy.ts'

/** Used only for its identities. */
const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant })

/** The changes made to correctly completed rows. */
const spoils = [
  'state = 99',
  'recovery = 77',
  `outcome = '\\xff00ff00'::bytea`,
  `outcome = ''::bytea`,
  `outcome = set_byte(outcome, 0, 250)`,
  'outcome = null',
  `fingerprint = ''::bytea`,
]

/** The same changes in Redis. `at`: where the outcome begins. */
const redisSpoils: readonly ((row: Buffer, at: number) => Buffer)[] = [
  row => row.fill(99, 1, 2),
  row => row.fill(77, 2, 3),
  (row, at) => Buffer.concat([row.subarray(0, at), Buffer.from('ff00ff00', 'hex')]),
  (row, at) => Buffer.concat([row.subarray(0, at), Buffer.from([0])]),
  (row, at) => row.fill(250, at, at + 1),
  (row, at) => row.subarray(0, at),
  // The fingerprint: behind the call, which a finished row has not.
  row => row.fill(0, 70, 70 + row.readUInt16LE(68)),
]
const requests = 600
const atOnce = 20

export const badRows: Attack = async target => {
  const { name, random, signal, store } = target
  const from = random.between(1, 1e9)
  const keys = spoils.map((_, index) => `spoilt-${from}-${index}`)
  for (const key of keys) await post(target, { route: 'transfers', key, account: name })
  const ids = keys.map(key => latchkey.identify({ scope: name, operation: operations.transfers, key }))
  await (store === 'redis' ? spoilRedis(target, ids) : spoilPostgres(target, ids))
  await inParallel({ count: requests, atOnce, signal }, index =>
    post(target, { route: 'transfers', key: keys[index % keys.length] ?? '', account: name }),
  )
}

async function spoilPostgres({ keysUrl }: Target, ids: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: keysUrl })
  client.on('error', () => {})
  await client.connect()
  for (const [index, change] of spoils.entries()) {
    await client.query(`update latchkey.keys set ${change} where id = $1`, [ids[index]])
  }
  await client.end()
}

async function spoilRedis({ keysUrl }: Target, ids: readonly string[]): Promise<void> {
  const client = new Redis(keysUrl)
  client.on('error', () => {})
  for (const [index, spoil] of redisSpoils.entries()) {
    const key = rowKey((ids[index] ?? '').replaceAll('-', ''))
    const row = await client.getBuffer(key)
    if (row !== null) await client.set(key, spoil(row, outcomePlace(row)))
  }
  client.disconnect()
}
