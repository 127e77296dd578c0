/**
 * The client that a handler gets for the length of one transaction. It is used as the pool's own, but cannot end the
 * transaction, cannot give the connection back, and is of no use once the transaction has ended. The pooled client stays as it is.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import { nestedTransactions } from '../../shared/nested-transaction.ts'
import { adapted, type PgClient, type PgQueryable, type PgResult } from '../driver.ts'
import { transactionSql } from '../postgres-js/transaction-sql.ts'
import type { CommandWatch } from './watch-commands.ts'

export interface TransactionClient {
  readonly tx: PgClient
  /** For our own statements: past what is there for the handler. */
  readonly directly: PgQueryable
  /** Whatever is sent from now on is refused with this error, which is made then: most handlers send nothing more. */
  close(error: () => LatchkeyError): void
}

/** Where a transaction that we opened carries the way of our own statements: past what is there for the handler. */
const direct: unique symbol = Symbol('latchkey: direct')

export function directlyTo(tx: { readonly [direct]?: PgQueryable }): PgQueryable | undefined {
  return tx[direct]
}

export function transactionClient(client: PgClient, watch?: CommandWatch): TransactionClient {
  let over: (() => LatchkeyError) | undefined
  const directly: PgQueryable = {
    // What goes with the handler's rows must not be committed without them.
    query: (text, values) => {
      const gone = over ?? (watch?.ended() === undefined ? undefined : endedByHandler)
      return gone === undefined ? client.query(text, values) : Promise.reject(gone())
    },
  }
  const scope = client[adapted]?.scope
  if (scope !== undefined) {
    const tx = transactionSql({
      scope: { ...scope, over: () => over?.() ?? scope.over() },
      nested: nestedOn(client),
      own: [[direct, directly]],
    })
    // The store's own type says what it is: here it is only handed on.
    return { tx: tx as unknown as PgClient, directly, close: error => void (over ??= error) }
  }
  const own = new Map<PropertyKey, unknown>([
    [direct, directly],
    ['query', handlersQuery(client, () => over?.())],
    // Query builders give back what they think they have checked out. This one goes back when its transaction has ended.
    ['release', () => {}],
  ])
  return { tx: withOwn(client, own), directly, close: error => void (over ??= error) }
}

function endedByHandler(): LatchkeyError {
  return new LatchkeyError('not-a-transaction', 'the handler has ended this transaction itself, past its tx')
}

/** In all its forms `query` of `pg` takes a text or an object that has one, and perhaps values, and perhaps a callback. */
type AnyQuery = (...args: readonly unknown[]) => unknown
type Callback = (error: unknown, result?: PgResult) => void

function handlersQuery(client: PgClient, over: () => LatchkeyError | undefined): AnyQuery {
  const nested = nestedOn(client)
  return (...args) => {
    try {
      const error = over()
      if (error !== undefined) throw error
      const sent = nested(textOf(args[0]))
      // As it came: the driver knows more forms than the shape that we call.
      return sent === undefined ? Reflect.apply(client.query, client, args) : answer(sent, args)
    } catch (error) {
      // A query object has no promise to reject.
      if (isSubmittable(args[0])) throw error
      return answer(Promise.reject(error), args)
    }
  }
}

/** Sends a savepoint in place of what begins or ends a transaction; undefined: the text does neither. */
function nestedOn(client: PgQueryable): (text: string) => Promise<PgResult> | undefined {
  const nested = nestedTransactions()
  return text => {
    const instead = nested.enter(text)
    if (instead === undefined) return undefined
    const sent = savepointOf[instead.kind](client, instead.savepoint)
    sent.catch(() => nested.undo(instead))
    return sent
  }
}

/** Sent before they return, so that what is sent next comes after. */
const savepointOf = {
  begin: (client: PgQueryable, savepoint: string) => client.query(`SAVEPOINT ${savepoint}`),
  commit: (client: PgQueryable, savepoint: string) => client.query(`RELEASE SAVEPOINT ${savepoint}`),
  async rollback(client: PgQueryable, savepoint: string) {
    const result = await client.query(`ROLLBACK TO SAVEPOINT ${savepoint}`)
    // Or a loop that rolls back would pile them up in the server.
    await client.query(`RELEASE SAVEPOINT ${savepoint}`)
    return result
  },
} as const

function answer(sent: Promise<PgResult>, args: readonly unknown[]): Promise<PgResult> | undefined {
  const callback = args.find(isCallback)
  if (callback === undefined) return sent
  sent.then(
    result => callback(null, result),
    (error: unknown) => callback(error),
  )
  return undefined
}

function isCallback(value: unknown): value is Callback {
  return typeof value === 'function'
}

function textOf(config: unknown): string {
  if (typeof config === 'string') return config
  if (typeof config !== 'object' || config === null || !('text' in config)) return ''
  return typeof config.text === 'string' ? config.text : ''
}

function isSubmittable(config: unknown): boolean {
  return typeof config === 'object' && config !== null && 'submit' in config && typeof config.submit === 'function'
}

/** What is written onto it, by a query builder for instance, stays here: the next user of the connection sees none of it. */
function withOwn(client: PgClient, own: Map<PropertyKey, unknown>): PgClient {
  return new Proxy(client, {
    get(target, name) {
      if (own.has(name)) return own.get(name)
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function' || name === 'constructor') return value
      const bound: unknown = value.bind(target)
      own.set(name, bound)
      return bound
    },
    set: (_, name, value) => (own.set(name, value), true),
    has: (target, name) => own.has(name) || Reflect.has(target, name),
    deleteProperty: (_, name) => (own.delete(name), true),
    defineProperty: (_, name, { value }) => (own.set(name, value), true),
  })
}
