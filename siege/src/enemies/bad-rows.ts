/** Rows that are damaged by SQL, some as a newer version would write them, and then retried in the batches of the innocents. */
import pg from 'pg'
import { createLatchkey, singleTenant } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { operations } from '../operations.ts'
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
const requests = 600
const atOnce = 20

export const badRows: Attack = async target => {
  const { name, random, signal } = target
  const from = random.between(1, 1e9)
  const keys = spoils.map((_, index) => `spoilt-${from}-${index}`)
  for (const key of keys) await post(target, { route: 'transfers', key, account: name })
  await spoil(target, keys)
  await inParallel({ count: requests, atOnce, signal }, index =>
    post(target, { route: 'transfers', key: keys[index % keys.length] ?? '', account: name }),
  )
}

async function spoil({ databaseUrl, name }: Target, keys: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on('error', () => {})
  await client.connect()
  for (const [index, change] of spoils.entries()) {
    const id = latchkey.identify({ scope: name, operation: operations.transfers, key: keys[index] ?? '' })
    await client.query(`update latchkey.keys set ${change} where id = $1`, [id])
  }
  await client.end()
}
