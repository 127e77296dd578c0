/** Known bugs in limits: retries that pay for a flood, floods that pay nothing, leases without a bound, one tenant counted for another. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/latchkey/src'
const limits = `${source}/engine/limits`
const tests = 'packages/latchkey/test/limits'
const alone = (test: string): NamedTest => ({ path: `${tests}/limits.test.ts`, test })
const shared = (test: string): NamedTest => ({ path: `${tests}/shared.test.ts`, test })
const stored = (test: string): NamedTest => ({ path: `${tests}/stored.test.ts`, test })
const leased = (test: string): NamedTest => ({ path: `${limits}/shared-buckets.test.ts`, test })
const conforms = (test: string): NamedTest => ({ path: `${source}/stores/sqlite/conformance.test.ts`, test })

export const limitMutants: readonly Mutant[] = [
  {
    name: 'limits: a flood is refused as fast as it comes',
    patches: [{ file: `${limits}/with-limits.ts`, find: 'await pace.wait(scope)', replace: 'await (void pace)' }],
    caughtBy: [alone('are refused late to a scope that goes on after many refusals, and to no other')],
  },
  {
    name: 'limits: a token is not given back when the row was there',
    patches: [
      {
        file: `${limits}/with-limits.ts`,
        find: "if (!isNew) gates['new-keys'].giveBack(scope)",
        replace: 'if (!isNew) void gates',
      },
    ],
    caughtBy: [
      alone('do not count what is answered from a row, nor what runs again'),
      shared('do not spend the tokens of others on a crowd of retries'),
    ],
  },
  {
    name: 'limits: a retry is refused at an empty bucket',
    patches: [
      {
        file: `${limits}/with-limits.ts`,
        find: 'if (read === undefined || read.expired) return exceeded(core, gates, { request, excess })',
        replace: 'if (read !== excess) return exceeded(core, gates, { request, excess })',
      },
    ],
    caughtBy: [
      alone('do not count what is answered from a row, nor what runs again'),
      shared('let a retry run again at an empty bucket'),
      stored('are limited until enough of them has expired, and no retry is refused for them'),
    ],
  },
  {
    name: 'limits: a mismatch is not counted',
    patches: [
      {
        file: `${limits}/with-limits.ts`,
        find: 'excess === undefined ? answer : exceeded(core, gates, { request, excess })',
        replace: 'excess === undefined ? answer : answer',
      },
    ],
    caughtBy: [
      alone('are refused beyond their limit, without a word about what differs'),
      shared('count look-ups and mismatches, too'),
    ],
  },
  {
    name: 'limits: a lease is not bounded',
    patches: [
      {
        file: `${limits}/shared-buckets.ts`,
        find: 'Math.min(leaseTokensMax, Math.max(1, Math.floor(perMinute / leasesPerMinute)))',
        replace: 'Math.max(leaseTokensMax / leasesPerMinute, perMinute)',
      },
    ],
    caughtBy: [
      leased('are leased a tenth of the limit at a time, at most a hundred, and spent without a call'),
      leased('are shared by the processes, each of which holds at most one lease that others miss'),
    ],
  },
  {
    name: 'limits: a surplus of tokens is not returned',
    patches: [
      {
        file: `${limits}/shared-buckets.ts`,
        find: 'return tokens > 2 * this.leaseTokens',
        replace: 'return tokens > 2 * this.perMinute',
      },
    ],
    caughtBy: [
      leased('are spent by another caller if they are given back, and by another process if they are many'),
      shared('do not spend the tokens of others on a crowd of retries'),
    ],
  },
  {
    name: 'limits: a lease never lapses',
    patches: [
      {
        file: `${limits}/shared-buckets.ts`,
        find: 'held.lapsesAtMs = askedAtMs + lapseMs',
        replace: 'held.lapsesAtMs = Number.POSITIVE_INFINITY',
      },
    ],
    caughtBy: [leased('lapse after a minute'), leased('come back to nobody after their lease has lapsed')],
  },
  {
    name: 'limits: what is completed stays open',
    patches: [
      {
        file: `${limits}/with-figures.ts`,
        find: 'for (const figures of openKeys) figures.change(scope, -1)',
        replace: 'for (const figures of openKeys) figures.change(scope, 0)',
      },
    ],
    caughtBy: [stored('do not count what is completed at once')],
  },
  {
    name: 'limits: the open keys of another scope are counted',
    patches: [
      {
        file: `${source}/stores/sqlite/quotas/index.ts`,
        find: 'WHERE k.scope = ?1 ORDER BY k.rowid DESC',
        replace: 'WHERE k.scope >= ?1 ORDER BY k.rowid DESC',
      },
    ],
    caughtBy: [
      conforms('counts the rows of a scope that are not completed, whatever their state, and none of another scope'),
      conforms('measures the stored outcomes of a scope, small and large, of all operations or of one'),
    ],
  },
  {
    name: 'limits: on PostgreSQL the rows of scopes with the same entry are counted',
    patches: [
      {
        file: `${source}/stores/postgres/quotas/index.ts`,
        find: ') k where k.scope = $1::text`',
        replace: ') k where k.scope is not null`',
      },
    ],
    caughtBy: [
      {
        path: `${source}/stores/postgres/quotas/usage.pg.test.ts`,
        test: 'is that of the scope alone, also where another one has the same entry',
      },
    ],
  },
  {
    name: 'limits: a count on PostgreSQL reads all rows of an entry',
    patches: [
      {
        file: `${source}/stores/postgres/quotas/index.ts`,
        find: ' limit ${rowsReadMax}) k where',
        replace: ' limit ${rowsReadMax * 10}) k where',
      },
    ],
    caughtBy: [
      {
        path: `${source}/stores/postgres/quotas/usage.pg.test.ts`,
        test: 'reads a hundred thousand rows at most for stored bytes, however many there are',
      },
    ],
  },
  {
    name: 'limits: requests are refused while the store does not lease',
    patches: [
      {
        file: `${limits}/shared-buckets.ts`,
        find: 'if (!isAnswered) return this.own.take(scope)',
        replace: 'if (!isAnswered) return false',
      },
    ],
    caughtBy: [
      leased('leaves the limit to the process, which is counted and reported'),
      shared('are those of the process while the store does not answer, and no request is refused for it'),
    ],
  },
  {
    name: 'limits: a bucket in SQLite is debited below nothing',
    patches: [
      {
        file: `${source}/stores/shared/token-bucket.ts`,
        find: 'Math.min(tokens, Math.floor(filled))',
        replace: 'Math.max(tokens, Math.floor(filled - tokens))',
      },
    ],
    caughtBy: [
      conforms('leases from a bucket that is full at first no more than it has'),
      conforms('leases no token twice, however many ask at once'),
    ],
  },
]
