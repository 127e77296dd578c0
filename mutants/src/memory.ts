/** Known bugs in the memory store. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/memory'
const conforms = (test: string): NamedTest => ({ path: `${folder}/conformance.test.ts`, test })
const transaction = (test: string): NamedTest => ({ path: `${folder}/atomic/transaction.test.ts`, test })

export const memoryMutants: readonly Mutant[] = [
  {
    name: 'memory: an owner without the fence',
    patches: [
      {
        file: `${folder}/keys/row.ts`,
        find: 'return row.fence === claim.fence && row.claimId === claim.claimId',
        replace: 'return row.claimId === claim.claimId',
      },
    ],
    caughtBy: [conforms('refuses every write with the wrong fence to a row that is in_progress')],
  },
  {
    name: 'memory: values of a table handed out by reference',
    patches: [
      {
        file: `${folder}/atomic/transaction.ts`,
        find: 'structuredClone(value) as Value',
        replace: 'value as Value',
      },
    ],
    caughtBy: [transaction('restores every table when the work rejects, whatever was written, replaced and deleted')],
  },
  {
    name: 'memory: a commit over a row that was changed meanwhile',
    patches: [
      {
        file: `${folder}/atomic/transaction.ts`,
        find: 'const isStale = drafts[0].isStale()',
        replace: 'const isStale = false',
      },
    ],
    caughtBy: [transaction('is a conflict when its key was claimed by a call outside of it')],
  },
  {
    name: 'memory: two transactions open at once',
    patches: [
      { file: `${folder}/atomic/turn-queue.ts`, find: 'if (taken) return wait(limitMs)', replace: 'void wait' },
    ],
    caughtBy: [transaction('waits for the one before it, and is refused after waitMs')],
  },
  {
    name: 'memory: messages leave a transaction that is rolled back',
    patches: [
      {
        file: `${folder}/tables.ts`,
        find: 'append: message => void messages.push(message),',
        replace: 'append: message => below.append(message),',
      },
    ],
    caughtBy: [
      {
        path: `${folder}/outbox/index.test.ts`,
        test: 'shows a message to nobody before its transaction has committed',
      },
    ],
  },
]
