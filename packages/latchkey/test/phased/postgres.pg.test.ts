import { beforeAll, describe, expect, it } from 'vitest'
import type pg from 'pg'
import { json } from 'latchkey'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { openPlace } from '../processes/database.ts'
import { openStage } from './fixture.ts'
import { itSettlesDoubts } from './settle.cases.ts'
import { itRunsInPhases } from './steps.cases.ts'

describePostgres('phased work on PostgreSQL', database => {
  itRunsInPhases(() => database.url)
})

describePostgres('phased work in doubt on PostgreSQL', database => {
  itSettlesDoubts(() => database.url)
})

describePostgres('a phase that meets another transaction', database => {
  beforeAll(async () => {
    const place = await openPlace(database.url)
    await place.migrate()
    await place.close()
  })

  describe.each([
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
  ])('as %s', (_, code) => {
    it('is run again whole, and leaves one row of each write', async () => {
      const stage = await openStage(database.url)
      let tries = 0
      const conflicted = stage.latchkey.phased(`payments.${code}`, { version: 1 }, async x => {
        await x.phase('record', async tx => {
          tries += 1
          await stage.place.insert(tx, `conflict/${code}`)
          // The server's own error, in the handler's own statement, after a write that must not stay.
          const raise = `do $$ begin raise exception using errcode = '${code}'; end $$`
          if (tries < 3) await (tx as pg.PoolClient).query(raise)
        })
        return json(201, { tries })
      })
      const answer = await conflicted.run({ scope: 'acme', key: code, input: null })
      expect(answer).toMatchObject({ status: 201, value: { tries: 3 } })
      expect(await stage.place.businessRows(`conflict/${code}`)).toBe(1)
      await stage.close()
    })
  })
})

describePostgres('a phase that calls code with a transaction of its own', database => {
  beforeAll(async () => {
    const place = await openPlace(database.url)
    await place.migrate()
    await place.close()
  })

  it('commits it with its recovery point, or not at all', async () => {
    const stage = await openStage(database.url)
    let tries = 0
    const nesting = stage.latchkey.phased('payments.nesting', { version: 1 }, async x => {
      await x.phase('record', async tx => {
        tries += 1
        // The store is on a pool of pg.
        const client = tx as pg.PoolClient
        await client.query('begin')
        await stage.place.insert(tx, 'nested')
        await client.query('commit')
        if (tries === 1) throw new Error('a bug after the nested transaction')
      })
      return json(201, { tries })
    })
    const run = () => nesting.run({ scope: 'acme', key: 'nesting', input: null })
    await expect(run()).rejects.toThrow('a bug after the nested transaction')
    expect(await stage.place.businessRows('nested')).toBe(0)
    // Not before its pause is over.
    await expect
      .poll(() => run().catch(() => undefined), { timeout: 30_000 })
      .toMatchObject({ status: 201, value: { tries: 2 } })
    expect(await stage.place.businessRows('nested')).toBe(1)
    await stage.close()
  })

  it('cannot end its transaction, and is told so', async () => {
    const stage = await openStage(database.url)
    const ending = stage.latchkey.phased('payments.ending', { version: 1 }, async x => {
      await x.phase('record', async tx => {
        await stage.place.insert(tx, 'ended')
        await (tx as pg.PoolClient).query('commit')
      })
      return json(201, {})
    })
    const run = ending.run({ scope: 'acme', key: 'ending', input: null })
    await expect(run).rejects.toMatchObject({ code: 'not-a-transaction' })
    expect(await stage.place.businessRows('ended')).toBe(0)
    await stage.close()
  })
})
