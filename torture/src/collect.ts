/** Reads what is true at the end, and waits until all rows are at rest. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { factsFile } from './check/read-evidence.ts'
import type { Facts, Terms } from './check/facts.ts'
import type { KeyServer } from './keys/key-server.ts'

export interface Collecting {
  /** The shop's own. */
  readonly databaseUrl: string
  readonly keys: KeyServer
  readonly directory: string
  readonly terms: Terms
}

export async function collectFacts({ databaseUrl, keys, directory, terms }: Collecting): Promise<void> {
  await withClient(databaseUrl, async client => {
    const rows = async (text: string) => (await client.query(text)).rows
    const facts: Facts = {
      terms,
      orders: await rows('select id, key from orders'),
      payments: await rows('select id, key from payments'),
      refunds: await rows('select id, key from refunds'),
      transfers: await rows('select id, key, runs from transfers'),
      receipts: await rows('select account, seq, key from receipts'),
      ...(await keys.readFacts()),
    }
    writeFileSync(join(directory, factsFile), JSON.stringify(facts))
  })
}

/** Nothing owned, nothing waiting for another try. Returns what is left when the time is over. */
export async function drain(keys: KeyServer, limitMs: number): Promise<number> {
  const endMs = performance.now() + limitMs
  for (;;) {
    const left = await keys.moving()
    if (left === 0 || performance.now() > endMs) return left
    await delay(500)
  }
}

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
