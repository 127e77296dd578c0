/** Known bugs in the audit trail: a line without its end, an end without its line, a line that goes when it should stay. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/latchkey/src'
const conforms = (store: 'postgres' | 'sqlite' | 'memory', test: string): NamedTest => ({
  path: `${source}/stores/${store}/conformance${store === 'postgres' ? '.pg' : ''}.test.ts`,
  test,
})
const inMemory = (test: string): NamedTest => ({ path: 'packages/latchkey/test/audit/memory.test.ts', test })
const onlyIfItCommits = 'records an atomic operation if it commits, and only then'
const outlives = 'keeps lines when their rows are reaped or forgotten'

export const auditMutants: readonly Mutant[] = [
  {
    name: 'audit: the line of an atomic operation is outside its commit',
    patches: [
      {
        file: `${source}/stores/memory/tables.ts`,
        find: 'addLine: line => void lines.push(line)',
        replace: 'addLine: below.addLine',
      },
    ],
    caughtBy: [conforms('memory', onlyIfItCommits)],
  },
  {
    name: 'audit: the line of an atomic operation is forgotten (postgres)',
    patches: [
      {
        file: `${source}/stores/postgres/audit/lines.ts`,
        find: "outcome: string): string {\n  if (!sql.recordsLines) return ''",
        replace: "outcome: string): string {\n  if (sql.schema !== '') return ''",
      },
    ],
    caughtBy: [conforms('postgres', onlyIfItCommits)],
  },
  {
    name: 'audit: the line of an atomic operation is forgotten (sqlite)',
    patches: [
      {
        file: `${source}/stores/sqlite/keys/claim.ts`,
        find: '  addLine(handle, row.id, answer.outcome.status)\n',
        replace: '',
      },
    ],
    caughtBy: [conforms('sqlite', onlyIfItCommits)],
  },
  {
    name: 'audit: a batch of completions writes no lines',
    patches: [
      {
        file: `${source}/stores/postgres/keys/complete.ts`,
        find: '${sql.recordsLines ? recorded : update};',
        replace: '${recorded === "" ? recorded : update};',
      },
    ],
    caughtBy: [conforms('postgres', 'records of completions at one moment exactly those that were written')],
  },
  {
    name: 'audit: the line of a completion is in a commit of its own',
    patches: [
      {
        file: `${source}/stores/sqlite/connection/group-commit.ts`,
        find: '    const values = many(handle, kind.items)\n',
        replace: `    const values = many({ ...handle, run: (sql, given) => (sql.includes('INTO latchkey_audit_records') ? (setImmediate(() => handle.run(sql, given)), 1) : handle.run(sql, given)) }, kind.items)\n`,
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/test/audit/sqlite.system.test.ts',
        test: 'has a completed line for each completed row and no other',
      },
    ],
  },
  {
    name: 'audit: the reaper deletes lines (postgres)',
    patches: [
      {
        file: `${source}/stores/postgres/keys/reap.ts`,
        find: "    ), ${dropJournals(sql, 'gone')}",
        replace:
          "    ), lines_gone as (delete from ${sql.auditRecords} r where r.key_id = any(array(select g.id from gone g))), ${dropJournals(sql, 'gone')}",
      },
    ],
    caughtBy: [conforms('postgres', outlives)],
  },
  {
    name: 'audit: the reaper deletes lines (sqlite)',
    patches: [
      {
        file: `${source}/stores/sqlite/keys/reap.ts`,
        find: '    deleteJournal(handle, String(id))\n',
        replace: `    deleteJournal(handle, String(id))\n    handle.rows('DELETE FROM latchkey_audit_records WHERE id = ?1', [String(id)])\n`,
      },
    ],
    caughtBy: [conforms('sqlite', outlives)],
  },
  {
    name: 'audit: lines are deleted before the sink has them',
    patches: [
      {
        file: `${source}/engine/audit/trail.ts`,
        find: '    await within(clock, sinkMsMax, async () => sink(lines))\n',
        replace: '    await records.handedOver(taken)\n    await within(clock, sinkMsMax, async () => sink(lines))\n',
      },
    ],
    caughtBy: [inMemory('hands the lines to the sink in order, again after it rejected')],
  },
  {
    name: 'audit: a line that could not be written changes the answer of a misuse',
    patches: [
      {
        file: `${source}/engine/audit/trail.ts`,
        find: "      telemetry.report('the line of a refused misuse could not be written', { operation, identity: id, error })\n",
        replace:
          "      telemetry.report('the line of a refused misuse could not be written', { operation, identity: id, error })\n      throw error\n",
      },
    ],
    caughtBy: [inMemory('answers a misuse the same when its line cannot be written, and reports that')],
  },
]
