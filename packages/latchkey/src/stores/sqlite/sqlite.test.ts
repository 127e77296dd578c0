import { existsSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../test/sqlite/fixture.ts'
import { atomicRequest, claimRequest, hourMs, identity, outcome } from '../../../test/sqlite/requests.ts'
import { isLatchkeyError } from '../../ports/errors.ts'
import { sqliteStore, type SqliteStore } from './index.ts'

const open = (path: string) => new Database(path)
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const range = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at)

let harness: SqliteHarness
beforeEach(async () => {
  harness = await sqliteHarness(open)
})
afterEach(() => harness.close())

async function completed(store: SqliteStore, key: number, body: string | Uint8Array = `answer ${key}`): Promise<void> {
  const result = await store.claim(claimRequest(key))
  if (result.kind !== 'won') throw new Error(`key ${key} is taken`)
  expect(await store.complete(result.claim, outcome(body), hourMs)).toBe('written')
}

/** One atomic operation; `work` runs between the reservation and the record. */
function runAtomic(store: SqliteStore, key: number, work: () => Promise<unknown>) {
  const { transactor } = store
  const request = atomicRequest(key)
  return transactor.transaction(async tx => {
    const reserved = await transactor.reserve(tx, request)
    if (reserved.kind !== 'free') return 'rollback'
    tx.run('INSERT INTO orders VALUES (?1)', [`atomic ${key}`])
    await work()
    await transactor.record(tx, request, outcome(`answer ${key}`), reserved.fence)
    return 'commit'
  })
}

async function values(): Promise<readonly string[]> {
  return (await harness.business?.values()) ?? []
}

/** An atomic handler waits for 20 replays to be answered, amid 20 other keys and 20 writes of the application. */
async function serveAround(store: SqliteStore, isOpen: (open: boolean) => void): Promise<void> {
  const [first, done, fresh, own] = [1, range(100, 20), range(200, 20), range(300, 20)]
  for (const key of done) await completed(store, key)
  const before = await values()
  const app = new Database(harness.path)
  let handlerIsOpen = false
  let release = () => {}
  const released = new Promise<void>(resolve => (release = resolve))
  let entered = () => {}
  const inserted = new Promise<void>(resolve => (entered = resolve))

  const handler = runAtomic(store, first, async () => {
    isOpen((handlerIsOpen = true))
    entered()
    await released
    isOpen((handlerIsOpen = false))
  })
  await inserted
  const replays = done.map(async key => {
    const result = await store.claim(claimRequest(key))
    const body = result.kind === 'seen' ? result.record.outcome?.body : undefined
    expect([Buffer.from(body ?? []).toString(), handlerIsOpen]).toEqual([`answer ${key}`, true])
  })
  const others = fresh.map(async key => {
    await completed(store, key)
    expect(handlerIsOpen).toBe(false)
  })
  const writes = own.map(key =>
    store.exclusive(() => {
      expect(handlerIsOpen).toBe(false)
      app.prepare('INSERT INTO orders VALUES (?)').run(`app ${key}`)
    }),
  )
  expect(await values()).toEqual(before)
  await Promise.all(replays)
  release()
  expect(await handler).toEqual({ kind: 'committed' })
  await Promise.all([...others, ...writes])
  app.close()

  expect(await values()).toEqual([...before, `atomic ${first}`, ...own.map(key => `app ${key}`)])
  for (const key of [first, ...fresh]) expect((await store.read(identity(key).id))?.state).toBe('completed')
}

describe('one process', () => {
  it('serves other keys, replays and the application while an atomic handler waits, without blocking the event loop', async () => {
    const handles: Database.Database[] = []
    let handlerIsOpen = false
    let inVain = 0
    const store = await harness.open({
      open(path) {
        const database = open(path)
        handles.push(database)
        const exec = database.exec.bind(database)
        database.exec = (sql: string) => {
          if (handlerIsOpen && sql.startsWith('BEGIN')) inVain += 1
          return exec(sql)
        }
        return database
      },
    })
    await serveAround(store, now => (handlerIsOpen = now))
    // SQLite waits for a lock by blocking the process. So it is never asked for one that this process holds itself, and
    // says at once when another process holds it.
    expect(inVain).toBe(0)
    expect(handles.map(each => each.prepare('PRAGMA busy_timeout').all())).toEqual(handles.map(() => [{ timeout: 0 }]))
  })

  it('keeps the writes of others when the atomic handler they waited for rolls back', async () => {
    const store = await harness.open()
    const failed = runAtomic(store, 1, async () => {
      await pause(50)
      throw new Error('the handler failed')
    })
    await Promise.all([expect(failed).rejects.toThrow('the handler failed'), completed(store, 2)])
    expect(await values()).toEqual([])
    expect(await store.read(identity(1).id)).toBeUndefined()
    expect((await store.read(identity(2).id))?.state).toBe('completed')
  })

  it('tells the twin of an open atomic operation at once that it is busy', async () => {
    const store = await harness.open()
    let twin: string | undefined
    const end = await runAtomic(store, 1, async () => {
      await store.transactor.transaction(async tx => {
        twin = (await store.transactor.reserve(tx, atomicRequest(1))).kind
        return 'rollback'
      })
    })
    expect([end.kind, twin]).toEqual(['committed', 'busy'])
  })

  it('forgets who held an identity when its transaction ends', async () => {
    const store = await harness.open()
    await expect(runAtomic(store, 1, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
    expect((await runAtomic(store, 1, async () => {})).kind).toBe('committed')
  })

  it('rolls back a transaction that stays open too long, refuses its tx, and lets the others on', async () => {
    const store = await harness.open({ transactionMs: 60 })
    let late: unknown
    let finished: () => void = () => {}
    const handlerEnded = new Promise<void>(resolve => (finished = resolve))
    const slow = store.transactor.transaction(async tx => {
      await store.transactor.reserve(tx, atomicRequest(1))
      tx.run('INSERT INTO orders VALUES (?1)', ['too late'])
      await pause(150)
      try {
        tx.run('INSERT INTO orders VALUES (?1)', ['later still'])
      } catch (error) {
        late = error
      }
      finished()
      return 'commit'
    })
    await Promise.all([expect(slow).rejects.toThrow(/open for 60 ms and was rolled back/), completed(store, 2)])
    await handlerEnded
    expect(isLatchkeyError(late, 'store-unavailable')).toBe(true)
    expect(await values()).toEqual([])
    expect((await runAtomic(store, 1, async () => {})).kind).toBe('committed')
  })

  it('gives exclusive turns in order, one at a time, and passes results and errors on', async () => {
    const store = await harness.open()
    let inside = 0
    const turns = range(0, 5).map(turn =>
      store.exclusive(async () => {
        inside += 1
        await pause(5)
        expect(inside).toBe(1)
        inside -= 1
        if (turn === 3) throw new Error('turn 3')
        return turn
      }),
    )
    const results = await Promise.allSettled(turns)
    expect(results.map(result => (result.status === 'fulfilled' ? result.value : 'error'))).toEqual([
      0,
      1,
      2,
      'error',
      4,
    ])
  })

  it('ends an exclusive turn that takes too long, and still gives its result', async () => {
    const store = await harness.open({ transactionMs: 40 })
    let written = false
    const long = store.exclusive(async () => {
      while (!written) await pause(5)
      return 'done'
    })
    await completed(store, 1)
    written = true
    expect(await long).toBe('done')
  })

  it('refuses a write at once when too many wait', async () => {
    const store = await harness.open({ waitersMax: 2 })
    let leave: () => void = () => {}
    let held: Promise<void> = Promise.resolve()
    await new Promise<void>(inside => {
      held = store.exclusive(() => new Promise<void>(resolve => ((leave = resolve), inside())))
    })
    const claims = range(0, 5).map(key => store.claim(claimRequest(key)))
    const refused = await Promise.allSettled(claims.slice(2))
    expect(refused.map(result => result.status)).toEqual(['rejected', 'rejected', 'rejected'])
    leave()
    await held
    expect((await Promise.all(claims.slice(0, 2))).map(result => result.kind)).toEqual(['won', 'won'])
  })

  it('gives 900 KB with NUL bytes back byte for byte', async () => {
    const store = await harness.open()
    const body = Buffer.from(range(0, 900 * 1024).map(at => (at % 7 === 0 ? 0 : at * 31)))
    await completed(store, 1, body)
    const record = await store.read(identity(1).id)
    expect(Buffer.compare(record?.outcome?.body ?? new Uint8Array(), body)).toBe(0)
  })
})

describe('another process', () => {
  it('is waited for without blocking this one, and then named in the error', async () => {
    const store = await harness.open({ waitMs: 300 })
    const other = new Database(harness.path)
    other.exec('BEGIN IMMEDIATE')
    let ticks = 0
    const timer = setInterval(() => (ticks += 1), 5)
    const refused = store.claim(claimRequest(1))
    await expect(refused).rejects.toSatisfy(error => isLatchkeyError(error, 'store-unavailable'))
    expect(ticks).toBeGreaterThan(2)
    expect(
      (
        await store.transactor.transaction(async tx => {
          expect((await store.transactor.reserve(tx, atomicRequest(1))).kind).toBe('busy')
          return 'rollback'
        })
      ).kind,
    ).toBe('rolled-back')
    const claim = store.claim(claimRequest(1))
    other.exec('COMMIT')
    expect((await claim).kind).toBe('won')
    clearInterval(timer)
    other.close()
  })
})

describe('construction', () => {
  const refusal = (path: string) => {
    try {
      sqliteStore({ path, open })
    } catch (error) {
      return isLatchkeyError(error, 'misconfigured') ? error.message : error
    }
    return 'accepted'
  }

  it('refuses a database that only lives in memory', () => {
    for (const path of [':memory:', '', 'file::memory:?cache=shared', 'file:data.db?mode=memory']) {
      expect(refusal(path)).toMatch(/must be a file/)
    }
    expect(existsSync(':memory:')).toBe(false)
  })

  it('names the directory that does not exist or cannot be written', () => {
    expect(refusal(join(harness.path, '..', 'nowhere', 'data.db'))).toMatch(/directory .*nowhere does not exist/)
    // Not writable for root either.
    expect(refusal('/proc/data.db')).toMatch(/\/proc/)
  })

  it('refuses limits that are no positive numbers, and something that opens no database', () => {
    expect(() => sqliteStore({ path: harness.path, open, transactionMs: 0 })).toThrow(
      /transactionMs must be .* \(got 0\)/,
    )
    const opensNothing = () => ({}) as ReturnType<typeof open>
    expect(() => sqliteStore({ path: harness.path, open: opensNothing })).toThrow(/must give a handle/)
  })

  it('says that the tables are missing, and works as soon as they are there', async () => {
    const store = sqliteStore({ path: harness.path, open })
    const refused = [store.claim(claimRequest(1)), store.read(identity(1).id), store.list({ limit: 1 })]
    for (const call of refused) {
      await expect(call).rejects.toSatisfy(error => isLatchkeyError(error, 'store-not-migrated'))
    }
    await Promise.all([store.migrate(), store.migrate()])
    expect((await store.claim(claimRequest(1))).kind).toBe('won')
    await store.close()
    await expect(store.read(identity(1).id)).rejects.toThrow(/closed/)
  })

  it('commits with a real sync to the disk, in WAL mode', async () => {
    const used: InstanceType<typeof Database>[] = []
    await harness.open({ open: path => (used.push(new Database(path)), used.at(-1) ?? open(path)) })
    const asked = (database: InstanceType<typeof Database>, name: string) => database.prepare(`PRAGMA ${name}`).all()
    expect(used.length).toBe(2)
    for (const database of used) {
      expect(asked(database, 'journal_mode')).toEqual([{ journal_mode: 'wal' }])
      expect(asked(database, 'synchronous')).toEqual([{ synchronous: 2 }])
      expect(asked(database, 'busy_timeout')).toEqual([{ timeout: 0 }])
    }
  })
})
