import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { claimRequest, hourMs, identity, outcome } from '../../../../test/sqlite/requests.ts'
import type { SqliteStore } from '../index.ts'
import { readManySql } from './read-batch.ts'

const range = (count: number) => Array.from({ length: count }, (_, at) => at)

let harness: SqliteHarness
let outside: InstanceType<typeof Database>
/** How often the driver was asked for rows by identity, and what it does before it answers that or anything else. */
let looks: number
let beforeLook: () => void
let beforeOther: (sql: string) => void

const lockedFile = () => Object.assign(new Error('database is locked'), { rawCode: 5 })

const open = (path: string) => {
  const database = new Database(path)
  const prepare = database.prepare.bind(database)
  const watched = (sql: string) => {
    const statement = prepare(sql)
    const all = statement.all.bind(statement)
    statement.all = (...parameters: unknown[]) => {
      if (sql === readManySql) {
        looks += 1
        beforeLook()
      } else beforeOther(sql)
      return all(...parameters)
    }
    return statement
  }
  // Its type depends on what is bound, which nothing here looks at.
  database.prepare = watched as typeof database.prepare
  return database
}

beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  outside = new Database(harness.path)
  looks = 0
  beforeLook = () => {}
  beforeOther = () => {}
})
afterEach(async () => {
  outside.close()
  await harness.close()
})

async function completed(store: SqliteStore, key: number, body: string): Promise<void> {
  const result = await store.claim(claimRequest(key))
  if (result.kind !== 'won') throw new Error(`key ${key} is taken`)
  expect(await store.complete(result.claim, outcome(body), hourMs)).toBe('written')
}

async function answer(store: SqliteStore, key: number): Promise<string> {
  const result = await store.claim(claimRequest(key))
  return result.kind === 'seen' ? Buffer.from(result.record.outcome?.body ?? []).toString() : result.kind
}

describe('rows that are asked for in one turn of the event loop', () => {
  it('come by one statement, each to who asked for it, the absent and the large ones too', async () => {
    const store = await harness.open({ open })
    await Promise.all(
      range(40).map(key => completed(store, key, key % 10 === 9 ? 'large'.repeat(1_000) : `body ${key}`)),
    )
    looks = 0
    const asked = [...range(40), ...range(40)]
    const answers = Promise.all(asked.map(key => answer(store, key)))
    const absent = Promise.all(range(5).map(key => store.read(identity(1_000 + key).id)))
    expect(await absent).toEqual(Array(5).fill(undefined))
    expect(await answers).toEqual(asked.map(key => (key % 10 === 9 ? 'large'.repeat(1_000) : `body ${key}`)))
    expect(looks).toBe(1)
  })

  it('come by several statements when they are very many', async () => {
    const store = await harness.open({ open })
    await completed(store, 1, 'done')
    looks = 0
    expect(await Promise.all(range(600).map(() => answer(store, 1)))).toEqual(Array(600).fill('done'))
    expect(looks).toBe(3)
  })

  it('are as they were written: instants, texts with quotes, a description, an error', async () => {
    const store = await harness.open({ open })
    const request = {
      ...claimRequest(1),
      description: 'a "quoted" \\ näme \u2028',
      fingerprint: Buffer.from([0, 255, 34]),
    }
    const result = await store.claim(request)
    if (result.kind !== 'won') throw new Error(result.kind)
    await store.fail(result.claim, { to: 'failed_retryable', errorCode: 'E"1\n', dueInMs: hourMs })
    const { records } = await store.list({ limit: 1 })
    const [listed] = records
    const read = await store.read(request.identity.id)
    expect({ ...read, dueInMs: 0, ageMs: 0 }).toEqual({
      ...listed,
      fingerprint: request.fingerprint,
      dueInMs: 0,
      ageMs: 0,
    })
    expect(Math.abs((read?.dueInMs ?? 0) - (listed?.dueInMs ?? 0))).toBeLessThan(60_000)
    expect(read).toMatchObject({ description: request.description, lastErrorCode: 'E"1\n' })
  })

  it('do not suffer from one that cannot be read', async () => {
    const store = await harness.open({ open })
    for (const key of range(3)) await completed(store, key, `body ${key}`)
    outside.exec(`UPDATE latchkey_keys SET outcome = x'f0' WHERE id = '${identity(1).id}'`)
    expect(await Promise.all(range(3).map(key => answer(store, key)))).toEqual(['body 0', '', 'body 2'])
    expect(await store.read(identity(1).id)).toMatchObject({
      state: 'unreadable',
      why: expect.stringMatching(/format 15/),
    })
  })

  it('are looked for again when the file was locked', async () => {
    const store = await harness.open({ open })
    await completed(store, 1, 'done')
    let locked = 2
    beforeLook = () => {
      if (locked-- > 0) throw lockedFile()
    }
    expect(await Promise.all([answer(store, 1), answer(store, 2)])).toEqual(['done', 'won'])
  })

  it('are looked for again alone when the file was locked for one of them', async () => {
    const store = await harness.open({ open })
    await completed(store, 1, 'small')
    await completed(store, 2, 'large'.repeat(1_000))
    looks = 0
    let locked = 2
    beforeOther = sql => {
      if (sql.includes('latchkey_outcomes') && locked-- > 0) throw lockedFile()
    }
    expect(await Promise.all([answer(store, 1), answer(store, 2)])).toEqual(['small', 'large'.repeat(1_000)])
    expect(looks).toBe(3)
  })

  it('are all told of an error of the file', async () => {
    const store = await harness.open({ open })
    beforeLook = () => {
      throw new Error('disk I/O error')
    }
    const refused = { status: 'rejected', reason: { code: 'store-unavailable' } }
    expect(await Promise.allSettled([store.read('a'), store.claim(claimRequest(1))])).toMatchObject([refused, refused])
  })

  it('are still found when the store is closed meanwhile', async () => {
    const store = await harness.open({ open })
    await completed(store, 1, 'done')
    // The last turn to write is over: closing waits for nobody.
    for (const _ of range(3)) await new Promise(resolve => setImmediate(resolve))
    const read = store.read(identity(1).id)
    await store.close()
    expect(await read).toMatchObject({ state: 'completed' })
  })

  it('are found by the index, also when there are more of them than rows', async () => {
    await harness.open()
    const steps = outside.prepare(`EXPLAIN QUERY PLAN ${readManySql}`).all(['[]']) as { detail: string }[]
    expect(steps.map(({ detail }) => detail)).toEqual([
      expect.stringContaining('SCAN asked'),
      expect.stringContaining('SEARCH k USING INDEX sqlite_autoindex_latchkey_keys_1 (id=?)'),
    ])
  })
})
