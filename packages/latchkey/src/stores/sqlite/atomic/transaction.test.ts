import { join } from 'node:path'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { atomicRequest, claimRequest, identity, outcome } from '../../../../test/sqlite/requests.ts'
import { isLatchkeyError } from '../../../ports/errors.ts'
import type { SqliteStore, SqliteTx } from '../index.ts'

let harness: SqliteHarness
let store: SqliteStore
beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  store = await harness.open()
})
afterEach(() => harness.close())

/** Inside an open transaction of ours; commits. */
function inside(work: (tx: SqliteTx) => unknown) {
  return store.transactor.transaction(async tx => {
    await store.transactor.reserve(tx, atomicRequest(1))
    await work(tx)
    return 'commit'
  })
}

const notATransaction = (error: unknown) => isLatchkeyError(error, 'not-a-transaction')

describe('the tx of a handler', () => {
  it('runs, gets, lists and counts', async () => {
    await inside(tx => {
      tx.exec('CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, data BLOB, flag INTEGER) STRICT')
      const put = 'INSERT INTO things (name, data, flag) VALUES (?1, ?2, ?3)'
      expect(tx.run(put, ['a', Uint8Array.of(0, 1), true])).toEqual({ changes: 1, lastInsertRowid: 1 })
      expect(tx.get(`${put} RETURNING id, flag`, ['b', null, false])).toEqual({ id: 2, flag: 0 })
      expect(tx.get('SELECT name FROM things WHERE data = ?1', [Uint8Array.of(0, 1)])).toEqual({ name: 'a' })
      expect(tx.get('SELECT name FROM things WHERE id = 9')).toBeUndefined()
      expect(tx.run('UPDATE things SET flag = ?1', [7]).changes).toBe(2)
      expect(tx.all('SELECT id, data FROM things ORDER BY id')).toEqual([
        { id: 1, data: Uint8Array.of(0, 1) },
        { id: 2, data: null },
      ])
    })
  })

  it('refuses a value SQLite cannot hold, before the driver sees it', async () => {
    await inside(tx => {
      // What an untyped caller may do.
      for (const value of [undefined, {}, [], new Date(), Symbol('s'), () => {}] as never[]) {
        expect(() => tx.run('INSERT INTO orders VALUES (?1)', [value])).toThrow(/SQL parameter 1 is of type/)
      }
    })
    expect(await harness.business?.values()).toEqual([])
  })

  it('refuses to end the transaction, and allows savepoints', async () => {
    const ends = ['COMMIT', ' end', '-- now\ncommit;', '/* x */ ROLLBACK', 'rollback transaction']
    await inside(tx => {
      for (const sql of ends) expect(() => tx.exec(sql)).toThrow(/would end Latchkey's transaction/)
      tx.exec('SAVEPOINT one')
      tx.run('INSERT INTO orders VALUES (?1)', ['undone'])
      tx.exec('ROLLBACK TO one; RELEASE one')
      tx.run('INSERT INTO orders VALUES (?1)', ['kept'])
    })
    expect(await harness.business?.values()).toEqual(['kept'])
  })

  it('takes BEGIN with COMMIT or ROLLBACK for a nested transaction', async () => {
    await inside(tx => {
      tx.exec('BEGIN IMMEDIATE')
      tx.run('INSERT INTO orders VALUES (?1)', ['kept'])
      tx.run('begin')
      tx.run('INSERT INTO orders VALUES (?1)', ['undone'])
      tx.run('ROLLBACK')
      tx.exec('COMMIT;')
      expect(() => tx.exec('COMMIT')).toThrow(/would end Latchkey's transaction/)
    })
    expect(await harness.business?.values()).toEqual(['kept'])
  })

  it.each([`INSERT INTO orders VALUES ('gone'); ROLLBACK`, `INSERT INTO orders VALUES ('gone'); COMMIT; BEGIN`])(
    'refuses an end among several statements, before any of them runs: %s',
    async text => {
      await inside(tx => expect(() => tx.exec(text)).toThrow(/must be sent alone/))
      expect(await harness.business?.values()).toEqual([])
    },
  )

  it('notices that a statement ended the transaction all the same, and never says committed', async () => {
    const { transactor } = store
    const end = await transactor.transaction(async tx => {
      await transactor.reserve(tx, atomicRequest(1))
      tx.exec(`INSERT INTO orders VALUES ('gone'); CREATE TABLE once (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)`)
      expect(() => tx.exec('INSERT INTO once VALUES (1), (1)')).toThrow(/UNIQUE/)
      expect(await transactor.record(tx, atomicRequest(1), outcome('x'), 0)).toBe('ended')
      return 'commit'
    })
    expect(end).toEqual({ kind: 'ended-by-handler', how: 'rolled-back' })
    expect(await harness.business?.values()).toEqual([])
    expect((await store.claim(claimRequest(2))).kind).toBe('won')
  })

  it('passes the errors of the driver on as they are', async () => {
    await inside(tx => expect(() => tx.run('INSERT INTO nowhere VALUES (1)')).toThrow(/no such table: nowhere/))
  })

  it('refuses everything once the handler has returned', async () => {
    let kept: SqliteTx | undefined
    await inside(tx => (kept = tx))
    for (const use of [() => kept?.run('SELECT 1'), () => kept?.all('SELECT 1'), () => kept?.exec('SELECT 1')]) {
      expect(use).toThrow(/this transaction has ended/)
    }
  })
})

describe("the application's own transaction", () => {
  let app: InstanceType<typeof Database>
  beforeEach(() => {
    app = new Database(harness.path)
  })
  afterEach(() => app.close())

  async function runIn(own: unknown, key: number) {
    const tx = await store.transactor.adopt(own)
    const request = atomicRequest(key)
    const reserved = await store.transactor.reserve(tx, request)
    if (reserved.kind !== 'free') return reserved.kind
    app.prepare('INSERT INTO orders VALUES (?)').run(`order ${key}`)
    return store.transactor.record(tx, request, outcome('kept'), reserved.fence)
  }

  it('takes the key row with it, at commit and at rollback', async () => {
    app.exec('BEGIN IMMEDIATE')
    expect(await runIn(app, 1)).toBe('recorded')
    app.exec('ROLLBACK')
    expect(await store.read(identity(1).id)).toBeUndefined()
    app.exec('BEGIN')
    expect(await runIn(app, 1)).toBe('recorded')
    expect(await store.read(identity(1).id)).toBeUndefined()
    app.exec('COMMIT')
    expect((await store.read(identity(1).id))?.state).toBe('completed')
    expect(await harness.business?.values()).toEqual(['order 1'])
    app.exec('BEGIN')
    expect(await runIn(app, 1)).toBe('seen')
    app.exec('COMMIT')
  })

  it('is refused when the handle is in none, or open on another file', async () => {
    await expect(store.transactor.adopt(app)).rejects.toThrow(/no open transaction/)
    const elsewhere = new Database(join(harness.path, '..', 'elsewhere.db'))
    elsewhere.exec('BEGIN')
    await expect(store.transactor.adopt(elsewhere)).rejects.toThrow(/another file/)
    elsewhere.close()
    const other = await harness.open()
    await inside(async tx => await expect(other.transactor.adopt(tx)).rejects.toSatisfy(notATransaction))
  })

  it('is told to begin with the write lock when it read before others wrote', async () => {
    app.exec('BEGIN')
    app.prepare('SELECT COUNT(*) AS n FROM orders').all()
    await store.claim(claimRequest(5))
    await expect(runIn(app, 1)).rejects.toThrow(/BEGIN IMMEDIATE/)
    app.exec('ROLLBACK')
  })

  it('runs inside an exclusive turn', async () => {
    const result = await store.exclusive(async () => {
      app.exec('BEGIN IMMEDIATE')
      const recorded = await runIn(app, 1)
      app.exec('COMMIT')
      return recorded
    })
    expect(result).toBe('recorded')
    expect(await harness.business?.values()).toEqual(['order 1'])
  })
})
