/** What a store says of itself, and that it is so. */
import assert from 'node:assert/strict'
import type { Faculty, Store } from 'latchkey'
import type { StoreCase } from '../store-harness.ts'
import { identity } from './fixture.ts'
import { job } from './steps/deferred.ts'

const members: Readonly<Record<Faculty, keyof Store>> = {
  transactions: 'transactor',
  steps: 'steps',
  phases: 'phases',
  outbox: 'outbox',
  reconciliation: 'reconciliation',
  ledgers: 'ledgers',
  values: 'values',
  erasure: 'erasure',
  auditRecords: 'auditRecords',
  quotas: 'quotas',
  inbox: 'inbox',
  references: 'references',
  admin: 'admin',
}

// `as`: Object.keys widens the names of our own table to string.
export const everyFaculty: readonly Faculty[] = Object.keys(members) as Faculty[]

/** What a faculty is built on. */
const foundations: Partial<Record<Faculty, readonly Faculty[]>> = {
  phases: ['steps', 'transactions'],
  outbox: ['transactions'],
  ledgers: ['reconciliation'],
}

export const traitCases: readonly StoreCase[] = [
  {
    name: 'has the member of each faculty that it names, and of no other',
    async run(harness) {
      const store = await harness.open()
      const found = everyFaculty.filter(faculty => store[members[faculty]] !== undefined)
      assert.deepEqual(
        found,
        everyFaculty.filter(faculty => store.traits.faculties.includes(faculty)),
      )
    },
  },
  {
    name: 'has with each faculty those that it is built on',
    async run(harness) {
      const { faculties } = (await harness.open()).traits
      for (const faculty of faculties) {
        for (const below of foundations[faculty] ?? [])
          assert.ok(faculties.includes(below), `${faculty} is built on ${below}, which is not there`)
      }
    },
  },
  {
    name: 'says that it is transactional exactly when it has transactions',
    async run(harness) {
      const { transactional, faculties } = (await harness.open()).traits
      assert.equal(transactional !== false, faculties.includes('transactions'))
    },
  },
  {
    name: 'carries guarded operations, and of the other kinds those that its faculties allow',
    async run(harness) {
      const { kinds, faculties } = (await harness.open()).traits
      assert.ok(kinds.includes('guarded'), 'every store carries guarded operations')
      assert.equal(kinds.includes('atomic'), faculties.includes('transactions'))
      for (const kind of ['phased', 'deferred'] as const)
        assert.equal(kinds.includes(kind), faculties.includes('steps'), `${kind} needs steps, and no more`)
    },
  },
  {
    name: 'refuses to queue work where it has no steps',
    async run(harness) {
      const store = await harness.open()
      if (store.steps !== undefined) return
      await assert.rejects(store.enqueue(job('a')))
      assert.equal(await store.read(identity('a').id), undefined)
    },
  },
]
