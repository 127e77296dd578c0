/** Bugs that let an error of a connection end the process. */
import type { Mutant, NamedTest } from './mutant.ts'

const file = 'packages/latchkey/src/stores/postgres/connection/ignore-errors.ts'
const outlives = (phase: string): NamedTest => ({
  path: 'packages/latchkey/test/postgres/connection-ends.system.test.ts',
  test: `a connection that the server ends does not end the process ${phase}`,
})

export const postgresConnectionMutants: readonly Mutant[] = [
  {
    name: 'postgres: connections are covered only while they are new',
    patches: [
      {
        file,
        find: `pool.on('acquire', client => void ignoreErrors(client))`,
        replace: `pool.on('connect' as 'acquire', client => void setImmediate(ignoreErrors(client)))`,
      },
    ],
    caughtBy: [outlives('handed over by a query to a transaction'), outlives('checked out by the application')],
  },
  {
    name: 'postgres: errors of idle connections are left to the application',
    patches: [{ file, find: `  pool.on('error', ignore)\n`, replace: '' }],
    caughtBy: [outlives('idle'), outlives('after it was given back with an error')],
  },
  {
    name: 'postgres: errors of a connection that was handed in are left to the caller',
    patches: [{ file, find: 'if (isEmitter(tx)) ignoreErrors(tx)', replace: 'if (isEmitter(tx)) return' }],
    caughtBy: [
      outlives('between the statements that we send in a transaction handed in by the caller'),
      outlives('while the caller is about to end the transaction that was handed in'),
    ],
  },
]
