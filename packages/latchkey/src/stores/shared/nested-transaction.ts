/**
 * What begins or ends a transaction, sent inside one of ours. A library that opens its own gets a savepoint; what would end ours
 * is refused. The texts are read to help, not to be safe: whatever slips through is seen by what the server did.
 */
import { LatchkeyError } from '../../ports/errors.ts'
import { splitStatements } from './split-statements.ts'

export interface Nested {
  readonly kind: 'begin' | 'commit' | 'rollback'
  /** The savepoint that stands for the nested transaction. Unique within the outer one. */
  readonly savepoint: string
}

export interface NestedTransactions {
  /** What to do instead of sending this text; undefined: send it. Throws for what must not be sent. */
  enter(text: string): Nested | undefined
  /** The database refused what was done instead. */
  undo(nested: Nested): void
}

export function nestedTransactions(): NestedTransactions {
  const open: string[] = []
  let begun = 0
  return {
    enter(text) {
      const kind = controlOf(text)
      if (kind === undefined) return undefined
      if (kind === 'begin') {
        begun += 1
        const savepoint = `latchkey_nested_${begun}`
        open.push(savepoint)
        return { kind, savepoint }
      }
      const savepoint = open.pop()
      if (savepoint === undefined) throw refusal(text, `would end Latchkey's transaction: ${howToEnd}`)
      return { kind, savepoint }
    },
    undo({ kind, savepoint }) {
      if (kind === 'begin' && open.at(-1) === savepoint) open.pop()
      // Libraries roll back when their COMMIT was refused.
      if (kind === 'commit') open.push(savepoint)
    },
  }
}

const howToEnd = 'return to commit, throw to roll back; SAVEPOINT, or BEGIN and COMMIT in pairs, are fine'
const anyControl = /\b(?:begin|start|commit|end|rollback|abort|prepare)\b/i
const control = /^(begin|start\s+transaction|commit|end|rollback|abort|prepare\s+transaction)\b([\s\S]*)$/i

function controlOf(text: string): Nested['kind'] | undefined {
  if (!anyControl.test(text)) return undefined
  const statements = splitStatements(text)
  const found = statements.find(statement => control.test(statement) && !isRollbackTo(statement))
  if (found === undefined) return undefined
  if (statements.length > 1)
    throw refusal(found, 'stands among several statements of one text, and must be sent alone to become a savepoint')
  return kindOf(found)
}

function kindOf(statement: string): Nested['kind'] {
  const [, verb = '', rest = ''] = control.exec(statement) ?? []
  const word = verb.toLowerCase().replace(/\s+/, ' ')
  const options = rest.trim().toLowerCase().replace(/\s+/g, ' ')
  if (word === 'prepare transaction') throw refusal(statement, `would end Latchkey's transaction: ${howToEnd}`)
  if (word === 'begin' || word === 'start transaction') {
    // SQLite's say when to take a lock that the outer transaction has.
    if (/^(?:(?:deferred|immediate|exclusive) ?)?(?:work|transaction)?$/.test(options)) return 'begin'
    throw refusal(
      statement,
      'asks for a transaction of its own kind inside another one: leave the options out, and give the level of isolation to the whole (default_transaction_isolation of the pool, or your own transaction handed in)',
    )
  }
  if (/^(?:work|transaction)?(?: ?and no chain)?$/.test(options))
    return word === 'commit' || word === 'end' ? 'commit' : 'rollback'
  throw refusal(statement, `would end Latchkey's transaction: ${howToEnd}`)
}

function isRollbackTo(statement: string): boolean {
  return /^rollback\s+(?:(?:work|transaction)\s+)?to\b/i.test(statement)
}

function refusal(text: string, why: string): LatchkeyError {
  return new LatchkeyError('not-a-transaction', `"${text.trim().slice(0, 60)}" ${why}`)
}
