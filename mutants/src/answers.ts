/** Known bugs in what is stored, and in who is told: an answer judged wrongly, a row handed to somebody who may not see it. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/engine'
const failures = (test: string): NamedTest => ({ path: 'packages/latchkey/test/engine/failures.test.ts', test })
const judged = (test: string): NamedTest => ({ path: `${folder}/judge.test.ts`, test })

export const answerMutants: readonly Mutant[] = [
  {
    name: 'answers: a 429 frees a held key',
    patches: [
      {
        file: `${folder}/judge.ts`,
        find: `'not-now': { hold: 'keep',`,
        replace: `'not-now': { hold: 'retryable',`,
      },
    ],
    caughtBy: [
      failures('of 429 is stored under hold: nothing proves that nothing was done'),
      judged('judges a 429 that was returned, under hold: keep'),
    ],
  },
  {
    name: 'answers: notExecuted() goes unheard',
    patches: [
      {
        file: `${folder}/guarded.ts`,
        find: 'judge(attempt, settings, context[saidNotExecuted])',
        replace: 'judge(attempt, settings, false)',
      },
    ],
    caughtBy: [failures('leaves the key free under hold when the handler said notExecuted() before it')],
  },
  {
    name: 'answers: a phased 429 is run again',
    patches: [
      {
        file: `${folder}/phased.ts`,
        find: `onFailure: 'resume' })`,
        replace: `onFailure: 'rerun' })`,
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/test/phased/sqlite.test.ts',
        test: 'stores a 429 that its definition returns: it is its outcome, and charged before',
      },
    ],
  },
]
