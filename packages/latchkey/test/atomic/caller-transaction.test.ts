import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Storable } from '../../src/engine/json-of.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import type { SqliteTx } from '../../src/stores/sqlite/index.ts'
import { latchkeyOn, operationName, rowOf, runRequest, type TestLatchkey } from '../engine/fixture.ts'
import { everything, nothing, sqliteShop, type SqliteShop } from './fixture.ts'

describe('an atomic operation in the caller’s own transaction on SQLite', () => {
  let shop: SqliteShop
  let latchkey: TestLatchkey
  let operation: AtomicOperation<unknown>
  beforeAll(async () => {
    shop = await sqliteShop()
    latchkey = latchkeyOn(shop.store)
    operation = latchkey.atomic(operationName)
  })
  afterAll(() => shop.close())

  type Transact = <T>(work: (tx: unknown) => Promise<T>) => Promise<T>

  /** The application's own handle, in its turn to write. */
  const onOwnHandle: Transact = work =>
    shop.store.exclusive(async () => {
      shop.app.exec('BEGIN IMMEDIATE')
      try {
        const value = await work(shop.app)
        shop.app.exec('COMMIT')
        return value
      } catch (error) {
        shop.app.exec('ROLLBACK')
        throw error
      }
    })
  let outer = 0
  /** The tx that another atomic operation was given. */
  const onTxOfTheStore: Transact = async work => {
    outer += 1
    const box: { value?: Awaited<ReturnType<typeof work>> } = {}
    await latchkey.atomic('outer').run({ scope: 'acme', key: `outer-${outer}`, input: {} }, async ({ tx }) => {
      box.value = await work(tx)
    })
    // Set by the handler, which ran: the key is new.
    return box.value as Awaited<ReturnType<typeof work>>
  }

  describe.each([
    ['own handle', onOwnHandle],
    ['tx of the store', onTxOfTheStore],
  ] as const)('on an %s', (name, transact) => {
    const key = (of: string) => `${of} ${name}`
    const ask = (tx: unknown, of: string, value: Storable = 'ran') =>
      operation.run({ ...runRequest(key(of)), tx }, async x => {
        await shop.order(x.tx, key(of))
        return value
      })

    it('is visible to others with the caller’s commit, not before', async () => {
      const value = await transact(async tx => {
        const ran = await ask(tx, 'commit')
        expect(await shop.committed(key('commit'))).toEqual(nothing)
        return ran
      })
      expect(value).toBe('ran')
      expect(await shop.committed(key('commit'))).toEqual(everything)
      expect(await rowOf(shop.store, key('commit'))).toMatchObject({ state: 'completed', fence: 1 })
    })

    it('vanishes with the caller’s rollback: key, order and outcome', async () => {
      const changedMind = new Error('changed my mind')
      const undone = transact(async tx => {
        await ask(tx, 'rollback')
        throw changedMind
      })
      await expect(undone).rejects.toBe(changedMind)
      expect(await shop.committed(key('rollback'))).toEqual(nothing)
      await transact(tx => ask(tx, 'rollback'))
      expect(await shop.committed(key('rollback'))).toEqual(everything)
    })

    it('replays the value without running, in the same transaction and in later ones', async () => {
      const values = await transact(async tx => [await ask(tx, 'replay', 1), await ask(tx, 'replay', 2)])
      values.push(await transact(tx => ask(tx, 'replay', 3)))
      expect(values).toEqual([1, 1, 1])
      expect(await shop.committed(key('replay'))).toEqual(everything)
    })

    it('rejects with key-reused for another input, and the transaction may go on', async () => {
      await transact(tx => ask(tx, 'reused'))
      await transact(async tx => {
        const reused = operation.run({ ...runRequest(key('reused'), { amount: 2 }), tx }, () => 'never')
        await expect(reused).rejects.toMatchObject({ name: 'LatchkeyError', code: 'key-reused' })
        await ask(tx, 'went on')
      })
      expect(await shop.committed(key('went on'))).toEqual(everything)
    })

    it('passes the handler’s error on unchanged, and leaves the transaction as it is', async () => {
      const bug = new Error('bug in the handler')
      await transact(async tx => {
        const run = operation.run({ ...runRequest(key('threw')), tx }, async x => {
          await shop.order(x.tx, key('threw'))
          throw bug
        })
        await expect(run).rejects.toBe(bug)
      })
      // The caller swallowed the error and committed: its rows are there, and no key says that it was done.
      expect(await shop.committed(key('threw'))).toEqual({ orders: 1, keys: 0, outcomes: 0 })
    })
  })

  describe('is refused at once, without running,', () => {
    let calls = 0
    beforeEach(() => {
      calls = 0
    })
    const refused = async (tx: unknown) => {
      const run = operation.run({ ...runRequest('impostor'), tx }, () => (calls += 1))
      await expect(run).rejects.toMatchObject({ name: 'LatchkeyError', code: 'not-a-transaction' })
      expect(calls).toBe(0)
    }

    it('when what is handed in is no transaction', async () => {
      for (const tx of [shop.app, shop.store, {}, null, 'tx', 7, () => {}]) await refused(tx)
    })

    it('when it is open on another file', async () => {
      const elsewhere = new Database(join(shop.path, '..', 'elsewhere.db'))
      elsewhere.exec('BEGIN IMMEDIATE')
      await refused(elsewhere)
      elsewhere.close()
    })

    it('when it has ended', async () => {
      let kept: SqliteTx | undefined
      await operation.run(runRequest('kept-tx'), ({ tx }) => {
        // What the SQLite store hands out.
        kept = tx as SqliteTx
      })
      await refused(kept)
    })
  })
})
