/** The table of the guide: a row for each store, with the traits that the store has. */
import { readdirSync, readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Faculty, StoreTraits } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { tieredStore } from '../../src/stores/tiered/index.ts'
import { sqliteDrivers } from '../sqlite/drivers.ts'
import { sqliteHarness } from '../sqlite/fixture.ts'

const guide = readFileSync(new URL('../../../../docs/guides/choose-a-store.md', import.meta.url), 'utf8')
const rows = guide.split('\n').filter(line => line.startsWith('| ') && line.includes('`latchkey/stores/'))
const cellsOf = (row: string) => row.split(' | ').map(cell => cell.replace(/^\||\|$/g, '').trim())

const everyTrait = ['transactional', 'clock', 'processes', 'durable', 'fence'] as const
const written = (traits: StoreTraits) =>
  everyTrait.map(name => (typeof traits[name] === 'string' ? `${name}: '${traits[name]}'` : `${name}: ${traits[name]}`))

async function sqliteTraits(): Promise<StoreTraits> {
  const [driver] = sqliteDrivers
  if (driver === undefined) throw new Error('there is always libsql')
  const harness = await sqliteHarness(driver.open)
  const { traits } = await harness.open()
  await harness.close()
  return traits
}

const traitsOf: Record<string, () => Promise<StoreTraits>> = {
  memory: async () => memoryStore().traits,
  sqlite: sqliteTraits,
  // It connects with the first query, and there is none.
  postgres: async () => postgresStore({ pool: new pg.Pool() }).traits,
  tiered: async () => {
    const cache = new Redis({ lazyConnect: true })
    return tieredStore({ store: postgresStore({ pool: new pg.Pool() }), cache, operations: ['x'] }).traits
  },
  redis: async () => redisStore({ client: new Redis({ lazyConnect: true }) }).traits,
}

/** The word by which the guide denies a faculty. A store without one of them says so in its row. */
const words: Readonly<Record<Faculty, string>> = {
  transactions: '`atomic`',
  steps: 'phased',
  phases: 'phases',
  outbox: 'outbox',
  reconciliation: 'look-ups',
  ledgers: 'ledger',
  values: '`rewrap`',
  erasure: '`erase`',
  auditRecords: 'audit trail',
  quotas: 'limits over processes',
  inbox: '`inbox`',
  references: '`x.reference`',
  admin: '`latchkey/admin`',
}
/** As the type has them: `words` would not compile without one. */
const everyFaculty = Object.keys(words)

describe('the guide to choose a store', () => {
  it('explains every faculty', () => {
    const explained = [...guide.matchAll(/^\| `(\w+)` \|/gm)].map(([, faculty = '']) => faculty)
    expect(explained.toSorted()).toEqual(everyFaculty.toSorted())
  })

  it.each(Object.keys(traitsOf))('names what %s lacks, as the suite leaves it out', async name => {
    const row = rows.find(line => line.includes(`\`latchkey/stores/${name}\``)) ?? ''
    const [, , denied = ''] = cellsOf(row)
    const traits = await traitsOf[name]?.()
    const lacking = Object.entries(words).filter(
      ([faculty]) => traits?.faculties.some(has => has === faculty) === false,
    )
    expect(lacking.filter(([, word]) => !denied.includes(word))).toEqual([])
  })

  it('has a row for every store, and each of its cells is filled', () => {
    const folders = readdirSync(new URL('../../src/stores/', import.meta.url))
    const stores = folders.filter(name => name !== 'shared').toSorted()
    const named = rows.map(row => /`latchkey\/stores\/([\w-]+)`/.exec(row)?.[1] ?? '').toSorted()
    expect(named).toEqual(stores)
    expect(Object.keys(traitsOf).toSorted()).toEqual(stores)
    for (const row of rows) {
      expect(cellsOf(row)).toHaveLength(5)
      expect(cellsOf(row).every(cell => cell.length > 10)).toBe(true)
    }
  })

  it.each(Object.keys(traitsOf))('writes of %s what its traits are', async name => {
    const row = rows.find(line => line.includes(`\`latchkey/stores/${name}\``)) ?? ''
    const shown = [...row.matchAll(/`((?:\w+): [^`]+)`/g)].map(([, text]) => text)
    const traits = await traitsOf[name]?.()
    expect(shown).toEqual(traits && written(traits))
  })
})
