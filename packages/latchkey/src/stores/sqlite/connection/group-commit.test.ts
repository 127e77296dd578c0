import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { claimRequest, hourMs, identity, outcome } from '../../../../test/sqlite/requests.ts'
import { type Clock, systemClock } from '../../../ports/clock.ts'
import { isLatchkeyError } from '../../../ports/errors.ts'
import { openDatabase, type Database as Opened } from './database.ts'
import type { Handle } from './handle.ts'
import type { SqliteStore } from '../index.ts'

/** Stands still, so that a busy machine does not end a batch before its time. */
const still: Clock = { ...systemClock, monotonicMs: () => 0 }
const range = (count: number) => Array.from({ length: count }, (_, at) => at)

let harness: SqliteHarness
/** What the driver was asked to do at the ends of transactions, and what it is to do instead. */
let ends: string[]
let beforeCommit: () => void
let opened: Opened | undefined

const open = (path: string) => {
  const database = new Database(path)
  const exec = database.exec.bind(database)
  database.exec = (sql: string) => {
    if (/^(?:BEGIN|COMMIT|ROLLBACK)/.test(sql)) ends.push(sql)
    if (sql === 'COMMIT') beforeCommit()
    return exec(sql)
  }
  return database
}

beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  ends = []
  beforeCommit = () => {}
  opened = undefined
})
afterEach(async () => {
  await opened?.close()
  await harness.close()
})

/** The turn of the migration is over: nobody has it. */
async function idle(): Promise<void> {
  for (const _ of range(3)) await new Promise(resolve => setImmediate(resolve))
}

async function openStore(): Promise<SqliteStore> {
  const store = await harness.open({ open, clock: still })
  await idle()
  ends = []
  return store
}

async function openFile(clock: Clock = still): Promise<Opened> {
  opened = openDatabase({ path: harness.path, open, clock, waitMs: 20_000, waitersMax: 10_000 })
  await opened.migrate()
  await idle()
  ends = []
  return opened
}

const put = (value: string) => (handle: Handle) => void handle.run('INSERT INTO orders VALUES (?1)', [value])
const values = async () => (await harness.business?.values()) ?? []
const commits = () => ends.filter(sql => sql === 'COMMIT').length

async function wonBy(store: SqliteStore, key: number) {
  const result = await store.claim(claimRequest(key))
  if (result.kind !== 'won') throw new Error(`key ${key} is taken`)
  return result.claim
}

describe('writes that wait at the same time', () => {
  it('share one transaction', async () => {
    const store = await openStore()
    const claims = await Promise.all(range(40).map(key => wonBy(store, key)))
    expect(ends).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
    const done = claims.map(claim => store.complete(claim, outcome('done'), hourMs))
    const mixed = [...done, ...range(10).map(key => wonBy(store, 100 + key))]
    await Promise.all(mixed)
    expect(ends).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'BEGIN IMMEDIATE', 'COMMIT'])
    for (const { id } of claims) expect((await store.read(id))?.state).toBe('completed')
  })

  it('see each other: of twins in one transaction one wins', async () => {
    const store = await openStore()
    const results = await Promise.all(range(8).map(() => store.claim(claimRequest(1))))
    expect(results.map(result => result.kind)).toEqual(['won', ...Array.from({ length: 7 }, () => 'seen')])
    expect(commits()).toBe(1)
  })

  it('are in the file when the first of them is told', async () => {
    const file = await openFile()
    const seen = range(5).map(async at => (await file.write(put(`value ${at}`)), (await values()).length))
    expect(await Promise.all(seen)).toEqual([5, 5, 5, 5, 5])
  })

  it('are answered without a transaction when they only repeat', async () => {
    const store = await openStore()
    await store.complete(await wonBy(store, 1), outcome('done'), hourMs)
    ends = []
    const replays = await Promise.all(range(5).map(() => store.claim(claimRequest(1))))
    expect(replays.map(result => result.kind === 'seen' && result.record.state)).toEqual(Array(5).fill('completed'))
    expect(ends).toEqual([])
  })
})

describe('one that fails', () => {
  const bad = (handle: Handle) => {
    put('half of it')(handle)
    throw new Error('this one is bad')
  }

  it.each([
    ['first', { at: 0, transactions: 1 }],
    // Those behind it were not reached yet, and come next.
    ['in the middle', { at: 3, transactions: 2 }],
    ['last', { at: 6, transactions: 1 }],
  ])('is undone alone when it comes %s', async (_, { at, transactions }) => {
    const file = await openFile()
    const writes = range(6).map(each => put(`good ${each}`))
    const results = await Promise.allSettled(writes.toSpliced(at, 0, bad).map(work => file.write(work)))
    expect(results.map(({ status }) => status)).toEqual(range(7).map(each => (each === at ? 'rejected' : 'fulfilled')))
    expect(results[at]).toMatchObject({ reason: { code: 'store-unavailable', message: /this one is bad/ } })
    expect(await values()).toEqual(range(6).map(each => `good ${each}`))
    expect(commits()).toBe(transactions)
  })

  it('takes no other with it however many fail', async () => {
    const file = await openFile()
    const works = range(12).map(each => (each % 3 === 0 ? bad : put(`good ${each}`)))
    const results = await Promise.allSettled(works.map(work => file.write(work)))
    expect(results.map(({ status }) => status === 'rejected')).toEqual(range(12).map(each => each % 3 === 0))
    expect(await values()).toEqual([1, 2, 4, 5, 7, 8, 10, 11].map(each => `good ${each}`))
  })
})

describe('a write', () => {
  it('is one for all claims of a key: the others see the row that it wrote', async () => {
    const store = await openStore()
    const claims = await Promise.all(range(1_000).map(() => store.claim(claimRequest(1))))
    expect(claims.filter(({ kind }) => kind === 'won')).toHaveLength(1)
    expect(claims.filter(result => result.kind === 'seen' && result.record.state === 'in_progress')).toHaveLength(999)
    expect(commits()).toBe(1)
  })

  it('that fails leaves the key to the next who asks for it', async () => {
    const store = await openStore()
    beforeCommit = () => {
      beforeCommit = () => {}
      throw new Error('disk I/O error')
    }
    const results = await Promise.allSettled(range(5).map(() => store.claim(claimRequest(1))))
    const kinds = results.map(result => (result.status === 'fulfilled' ? result.value.kind : result.status))
    expect(kinds).toEqual(['rejected', 'won', 'seen', 'seen', 'seen'])
  })
})

describe('a commit that fails', () => {
  it('is tried again in parts, and nobody is told before', async () => {
    const file = await openFile()
    beforeCommit = () => {
      beforeCommit = () => {}
      throw new Error('disk I/O error')
    }
    await Promise.all(range(6).map(each => file.write(put(`value ${each}`))))
    expect(await values()).toEqual(range(6).map(each => `value ${each}`))
    expect(commits()).toBe(3)
  })

  it('fails every one of them when it fails each time, and leaves nothing behind', async () => {
    const store = await openStore()
    beforeCommit = () => {
      throw new Error('disk I/O error')
    }
    const claims = await Promise.allSettled(range(5).map(key => store.claim(claimRequest(key))))
    for (const claim of claims) {
      expect(claim.status === 'rejected' && isLatchkeyError(claim.reason, 'store-unavailable')).toBe(true)
    }
    beforeCommit = () => {}
    for (const key of range(5)) expect(await store.read(identity(key).id)).toBeUndefined()
    expect((await wonBy(store, 1)).fence).toBe(1)
  })
})

describe('a batch', () => {
  it('takes along who stands behind a longer turn, which then comes next', async () => {
    const file = await openFile()
    const order: string[] = []
    const write = (name: string) => file.write(put(name)).then(() => order.push(name))
    const leave = await file.enter(1_000)
    const first = write('before')
    const turn = file.enter(20_000).then(done => (order.push('turn'), done))
    const second = write('behind')
    leave()
    const done = await turn
    const third = write('after')
    done()
    await Promise.all([first, second, third])
    expect(order).toEqual(['before', 'behind', 'turn', 'after'])
    expect(commits()).toBe(2)
  })

  it('has a limit in number', async () => {
    const file = await openFile()
    await Promise.all(range(600).map(each => file.write(put(`value ${each}`))))
    expect((await values()).length).toBe(600)
    expect(commits()).toBe(3)
  })

  it('has a limit in time, and lets timers and sockets on before the next', async () => {
    let nowMs = 0
    const file = await openFile({ ...systemClock, monotonicMs: () => nowMs })
    let turns = 0
    let over = false
    const count = () => {
      turns += 1
      if (!over) setImmediate(count)
    }
    setImmediate(count)
    const slow = range(40).map(each => (handle: Handle) => (put(`value ${each}`)(handle), (nowMs += 4)))
    await Promise.all(slow.map(work => file.write(work)))
    over = true
    // Three of them are more than ten milliseconds.
    expect(commits()).toBe(14)
    expect(turns).toBeGreaterThanOrEqual(13)
  })
})
