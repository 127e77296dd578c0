/** Known bugs in what is stored, and in who is told: an answer judged wrongly, a row handed to somebody who may not see it. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/engine'
const failures = (test: string): NamedTest => ({ path: 'packages/latchkey/test/engine/failures.test.ts', test })
const inMemory = (test: string): NamedTest => ({ path: 'packages/latchkey/test/authorize/memory.test.ts', test })
const onSqlite = (test: string): NamedTest => ({ path: 'packages/latchkey/test/authorize/sqlite.test.ts', test })
const onPostgres = (test: string): NamedTest => ({
  path: 'packages/latchkey/src/stores/postgres/conformance.pg.test.ts',
  test,
})
const judged = (test: string): NamedTest => ({ path: `${folder}/rules/judge.test.ts`, test })

export const answerMutants: readonly Mutant[] = [
  {
    name: 'answers: a 429 frees a held key',
    patches: [
      {
        file: `${folder}/rules/judge.ts`,
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
    name: 'answers: notExecuted() is ignored',
    patches: [
      {
        file: `${folder}/kinds/guarded.ts`,
        find: 'judge(ended, settings, context[saidNotExecuted])',
        replace: 'judge(ended, settings, false)',
      },
    ],
    caughtBy: [failures('leaves the key free under hold when the handler said notExecuted() before it')],
  },
  {
    name: 'answers: a phased 429 is run again',
    patches: [
      {
        file: `${folder}/steps/run-definition.ts`,
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
  {
    name: 'answers: a row changes hands before its caller is authorised',
    patches: [
      {
        file: `${folder}/run/claim.ts`,
        find: `request.authorizeReplay && (seen === undefined ? 'none' : grantOf(seen))`,
        replace: 'undefined',
      },
    ],
    caughtBy: [
      inMemory('guarded, rerun, over a row that is dead lease runs and tells nothing when authorizeReplay gives false'),
      onSqlite('phased, over a row that is pending runs and tells nothing when authorizeReplay gives false'),
    ],
  },
  {
    name: 'answers: an atomic row changes hands before its caller is authorised',
    patches: [
      {
        file: `${folder}/kinds/atomic.ts`,
        find: `if (run.request.authorizeReplay !== undefined) run = { ...run, takeOver: 'none' }`,
        replace: '',
      },
    ],
    caughtBy: [
      onSqlite('atomic, over a row that is failed_retryable runs and tells nothing when authorizeReplay gives false'),
    ],
  },
  {
    name: 'answers: authorised for one grant, taken over another',
    patches: [
      {
        file: `${folder}/run/claim.ts`,
        find: "(seen === undefined ? 'none' : grantOf(seen))",
        replace: "(seen === undefined ? 'none' : undefined)",
      },
    ],
    caughtBy: [
      onSqlite(
        'phased, over a row that is failed_retryable asks anew about a row that changed hands while its caller was asked about',
      ),
    ],
  },
  {
    name: 'answers: whatever is not false authorises',
    patches: [
      {
        file: `${folder}/run/answer-from-row.ts`,
        find: '(await request.authorizeReplay(record)) === true',
        replace: '(await request.authorizeReplay(record)) !== false',
      },
    ],
    caughtBy: [
      inMemory(
        'guarded, rerun, over a row that is dead lease runs and tells nothing when authorizeReplay gives nothing',
      ),
    ],
  },
  {
    name: 'answers: whatever is not false opens the status',
    patches: [
      {
        file: `${folder}/status.ts`,
        find: '(await settings.authorizeReplay(context, record)) === true',
        replace: '(await settings.authorizeReplay(context, record)) !== false',
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/test/http/status.test.ts',
        test: 'is not there for another tenant, a kind that has none, a caller whose rights were withdrawn, or nothing',
      },
    ],
  },
  {
    name: 'answers: PostgreSQL grants a row that the claim may not take over',
    patches: [
      {
        file: 'packages/latchkey/src/stores/postgres/sql/fragments.ts',
        find: `'' : \`when not \${mayTakeOver} then null\`}`,
        replace: `'' : \`when not \${mayTakeOver} and false then null\`}`,
      },
    ],
    caughtBy: [onPostgres('lets a row that is failed_retryable change hands only to a claim that names its grant')],
  },
  {
    name: 'answers: a Hono handler whose errors are rendered elsewhere',
    patches: [
      {
        file: 'packages/latchkey/src/http/hono/index.ts',
        find: '      checkErrors(declared.operation, options)\n',
        replace: '',
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/src/http/hono/index.test.ts',
        test: 'refuses a handler under hold that would not see what app.onError renders, and names both cures',
      },
    ],
  },
  {
    name: 'answers: the first client gets another answer than every retry',
    patches: [
      {
        file: 'packages/latchkey/src/http/exchange/exchange.ts',
        find: `if (attempt.kind !== 'threw' || stored !== 'yes')`,
        replace: `if (attempt.kind !== 'unreplayable' || stored !== 'yes')`,
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/src/http/hono/index.test.ts',
        test: 'sends what it stores for a throw that nothing can render',
      },
    ],
  },
  {
    name: 'answers: an expiry computed beside the row',
    patches: [
      {
        file: `${folder}/latchkey.ts`,
        find: `record?.state === 'completed' ? record.expiresAtMs : undefined`,
        replace: `record?.completedAtMs === undefined ? undefined : record.completedAtMs + 86_400_000`,
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/test/http/expiry.test.ts',
        test: 'says the row’s own instant on the first answer and on the replay, by the store’s clock',
      },
    ],
  },
  {
    name: 'answers: Retry-After ignores the time that has passed',
    patches: [
      {
        file: `${folder}/run/answer-from-row.ts`,
        find: 'core.durations.leftMs(operation, elapsedMs(record))',
        replace: 'core.durations.leftMs(operation, 0)',
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/test/engine/duplicates/retry-after.test.ts',
        test: 'is what the operation usually takes, minus what has elapsed, also past the lease',
      },
    ],
  },
]
