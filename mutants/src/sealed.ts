/** Known bugs in encryption and in erasing: a value that opens where it does not belong, plain text that stays, rows that should have stayed. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/latchkey/src'
const sealed = `${source}/engine/sealed`
const value = (test: string): NamedTest => ({ path: `${sealed}/seal.test.ts`, test })
const onSqlite = (test: string): NamedTest => ({ path: 'packages/latchkey/test/sealed/sqlite.test.ts', test })
const conforms = (test: string): NamedTest => ({ path: `${source}/stores/sqlite/conformance.test.ts`, test })

export const sealedMutants: readonly Mutant[] = [
  {
    name: 'sealed: the column is not authenticated',
    patches: [{ file: `${sealed}/seal.ts`, find: '`${column}:${identity}`', replace: '`${column && identity}`' }],
    caughtBy: [value('opens in no other column of its row'), onSqlite('refuses a text of another column')],
  },
  {
    name: 'sealed: the identity is not authenticated',
    patches: [{ file: `${sealed}/seal.ts`, find: '`${column}:${identity}`', replace: '`${column}:${identity && ""}`' }],
    caughtBy: [
      value('opens in no other column of its row, and in no other row'),
      onSqlite('refuses an outcome of another row, and runs nothing'),
    ],
  },
  {
    name: 'sealed: one salt for ever',
    patches: [
      { file: `${sealed}/value-keys.ts`, find: 'this.#written >= this.#valuesMax', replace: 'this.#valuesMax === 0' },
    ],
    caughtBy: [
      {
        path: `${sealed}/value-keys.test.ts`,
        test: 'serve a bounded number of values, and then another salt is drawn',
      },
    ],
  },
  {
    name: 'sealed: a step is not bound to its position',
    patches: [
      { file: `${sealed}/record.ts`, find: 'found.binding !== position', replace: 'found.binding === undefined' },
    ],
    caughtBy: [onSqlite('refuses the value of another step of the same row')],
  },
  {
    name: 'sealed: descriptions stay plain',
    patches: [
      {
        file: `${sealed}/store.ts`,
        find: 'if (description === undefined) return request',
        replace: 'if (description !== "") return request',
      },
    ],
    caughtBy: [onSqlite('holds the marker nowhere with encryption')],
  },
  {
    name: 'sealed: rewrap passes over evidence',
    patches: [{ file: `${source}/stores/shared/stored-values/rows.ts`, find: "  'evidence',\n", replace: '' }],
    caughtBy: [onSqlite('writes under a new key, reads both, and rewraps so that the old one can be thrown away')],
  },
  {
    name: 'sealed: rewrap replaces whatever is there',
    patches: [
      {
        file: `${source}/stores/sqlite/values/index.ts`,
        find: 'SET description = ?4 WHERE id = ?1 AND fence >= ?2 AND description = ?3',
        replace: 'SET description = ?4 WHERE id = ?1 AND fence >= ?2 AND ?3 IS NOT NULL',
      },
    ],
    caughtBy: [conforms('replaces a description, and not one that another grant has written')],
  },
  {
    name: 'erase: open rows go too',
    patches: [
      {
        file: `${source}/stores/sqlite/erasure/index.ts`,
        find: '(k.state = ${completed} OR k.state = ${failedRetryable}',
        replace: '(k.state <> -1 OR k.state = ${completed} OR k.state = ${failedRetryable}',
      },
    ],
    caughtBy: [
      conforms('counts what is open, and erases it with a reap after it has ended'),
      onSqlite('reports what is open and does not touch it'),
    ],
  },
  {
    name: 'erase: what began after the mark goes too',
    patches: [
      {
        file: `${source}/stores/sqlite/erasure/index.ts`,
        find: 'WHERE k.scope = ?1 AND k.created_at_ms <= ?3 AND',
        replace: 'WHERE k.scope = ?1 AND ?3 IS NOT NULL AND',
      },
    ],
    caughtBy: [conforms('erases nothing of a tenant that was not marked, and nothing that began after the mark')],
  },
]
