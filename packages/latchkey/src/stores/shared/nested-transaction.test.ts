import { describe, expect, it } from 'vitest'
import { nestedTransactions } from './nested-transaction.ts'
import { splitStatements } from './split-statements.ts'

describe('what would end a transaction', () => {
  it('is refused at depth 0, however it is written', () => {
    for (const text of [
      'commit',
      ' COMMIT ;',
      'End Work',
      '-- done\nCOMMIT TRANSACTION',
      '/* a /* nested */ one */ rollback',
      'abort',
      'rollback and no chain',
      'commit and chain',
      'rollback prepared $$x$$',
      `prepare transaction 'x'`,
    ]) {
      expect(() => nestedTransactions().enter(text), text).toThrow(/would end Latchkey's transaction: return to commit/)
    }
  })

  it('is refused as one of several statements, also after an open BEGIN', () => {
    for (const text of [
      'insert into a values (1); commit',
      'begin; insert into a values (1)',
      `select ';'; rollback; select 1`,
      'select $x$ ; $$ $x$;end',
      `select E'\\';commit', 'x';\ncommit`,
    ]) {
      const nested = nestedTransactions()
      nested.enter('begin')
      expect(() => nested.enter(text), text).toThrow(/must be sent alone/)
    }
  })

  it('is refused with options that only a transaction of its own could have', () => {
    for (const text of ['begin isolation level serializable', 'START TRANSACTION READ ONLY', 'begin work deferrable']) {
      expect(() => nestedTransactions().enter(text), text).toThrow(/leave the options out/)
    }
  })
})

describe('what does not end a transaction', () => {
  it('goes as it is', () => {
    for (const text of [
      '',
      'select 1',
      `select 'commit; begin'`,
      'select case when true then 1 end; select 2',
      'select "commit" from a; select `end`',
      '-- commit\nselect 1; select 2 -- ; commit',
      'savepoint a',
      'rollback to savepoint a',
      'ROLLBACK WORK TO a; release a',
      'do $$ begin perform 1; commit; end $$',
      'create function f() returns int language sql begin atomic select 1; end; select 2',
      'create temp trigger t after insert on a begin update b set c = 1; select 2; end; insert into a values (1)',
      'prepare p as select 1',
      'start',
    ]) {
      expect(nestedTransactions().enter(text), text).toBeUndefined()
    }
  })
})

describe('a nested transaction', () => {
  it('is a savepoint, and a nested one of that is another', () => {
    const nested = nestedTransactions()
    const outer = nested.enter('begin')
    const inner = nested.enter('START  transaction;')
    expect([outer?.kind, inner?.kind]).toEqual(['begin', 'begin'])
    expect(inner?.savepoint).not.toBe(outer?.savepoint)
    expect(nested.enter('rollback')).toEqual({ kind: 'rollback', savepoint: inner?.savepoint })
    expect(nested.enter('begin')?.savepoint).not.toBe(inner?.savepoint)
    nested.enter('abort work')
    expect(nested.enter('commit')).toEqual({ kind: 'commit', savepoint: outer?.savepoint })
    expect(() => nested.enter('commit')).toThrow(/would end/)
  })

  it('is still open when its COMMIT was refused, and was never when its BEGIN was', () => {
    const nested = nestedTransactions()
    const begun = nested.enter('begin')
    const refused = nested.enter('commit')
    if (refused !== undefined) nested.undo(refused)
    expect(nested.enter('rollback')?.savepoint).toBe(begun?.savepoint)
    const never = nested.enter('begin')
    if (never !== undefined) nested.undo(never)
    expect(() => nested.enter('rollback')).toThrow(/would end/)
  })
})

describe('statements', () => {
  it('are split where they end, and nowhere else', () => {
    expect(splitStatements(`select 'a;''b', "c;d" ; /* ; */ select $t$ ; $t$ -- ;\n;; select 3;`)).toEqual([
      `select 'a;''b', "c;d"`,
      `select $t$ ; $t$ -- ;`,
      'select 3',
    ])
  })

  it('end with the text when a quote or a comment does not', () => {
    for (const text of [`select 'a; b`, 'select 1 /* ; ', `select E'\\'; b`, 'select $$ ; ', 'select 1 -- ;'])
      expect(splitStatements(text)).toEqual([text.trimEnd()])
  })
})
