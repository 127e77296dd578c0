/**
 * The `sql` that a handler gets for the length of one transaction. A nested `begin` or `savepoint` is a savepoint; what would leave
 * the transaction, or end it, is refused.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { SqlQuery, SqlScope } from './driver.ts'
import { guarded, type Scope } from './scope.ts'

export interface HandlersSql {
  readonly scope: Scope
  /** Sends a savepoint in place of BEGIN, COMMIT and ROLLBACK. Undefined: the text is none of them. */
  readonly nested: (text: string) => Promise<unknown> | undefined
  /** Members that only Latchkey knows. */
  readonly own: readonly (readonly [PropertyKey, unknown])[]
}

type Work = (tx: unknown) => unknown

export function transactionSql({ scope, nested, own }: HandlersSql): SqlScope {
  const { root, scoped } = scope
  const made =
    (name: 'unsafe' | 'file') =>
    (...args: unknown[]) =>
      guarded(scope, Reflect.apply(Reflect.get(scoped, name), scoped, args), nested)
  const nest = async (work: Work): Promise<unknown> => {
    await nested('BEGIN')
    try {
      const result = await work(tx)
      const all = Array.isArray(result) ? await Promise.all(result) : result
      await nested('COMMIT')
      return all
    } catch (error) {
      // What the work threw says more than a rollback that failed after it.
      await nested('ROLLBACK')?.catch(() => {})
      throw error
    }
  }
  const members = new Map<PropertyKey, unknown>([
    ...own,
    ['unsafe', made('unsafe')],
    ['file', made('file')],
    // Drizzle sets its parsers there.
    ['options', root.options],
    ['savepoint', (name: string | Work, work?: Work) => nest(workOf(name, work))],
    ['begin', (options: string | Work, work?: Work) => nest(workOf(withoutLevel(options), work))],
    ['prepare', refused('prepare')],
  ])
  const tx: SqlScope = new Proxy(scoped, {
    apply(target, self, args) {
      const query: unknown = Reflect.apply(target, self, args)
      return isQuery(query) ? guarded(scope, query, nested) : query
    },
    get(target, name) {
      if (members.has(name)) return members.get(name)
      if (name in target || !(name in root)) return Reflect.get(target, name)
      return refused(String(name))
    },
    has: (target, name) => members.has(name) || name in target,
  })
  return tx
}

function withoutLevel(options: string | Work): string | Work {
  if (typeof options !== 'string' || options.trim() === '') return options
  throw new LatchkeyError(
    'not-a-transaction',
    `"begin ${options}" asks for a transaction of its own kind inside another one: leave the options out`,
  )
}

function workOf(first: string | Work, second: Work | undefined): Work {
  const work = second ?? first
  if (typeof work === 'function') return work
  throw new LatchkeyError('not-a-transaction', 'begin and savepoint need the function that does the work')
}

/** Names and lists for a template are no queries. */
function isQuery(value: unknown): value is SqlQuery {
  return typeof value === 'object' && value !== null && 'handler' in value && typeof value.handler === 'function'
}

function refused(name: string): () => never {
  return () => {
    throw new LatchkeyError(
      'not-a-transaction',
      `${name} does not belong to a transaction: call it on the sql that you gave to postgresStore`,
    )
  }
}
