/** Known bugs in what operators may do: rights that are not asked, one person for two, versions that are not compared, other sites and names that get in. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/latchkey/src'
const admin = `${source}/admin`
const tests = 'packages/latchkey/test/admin'
const service = (test: string): NamedTest => ({ path: `${tests}/service.test.ts`, test })
const guard = (test: string): NamedTest => ({ path: `${tests}/guard.test.ts`, test })
const routes = (test: string): NamedTest => ({ path: `${tests}/routes.test.ts`, test })
const times = (test: string): NamedTest => ({ path: `${tests}/times.test.ts`, test })
const durations = (test: string): NamedTest => ({ path: `${source}/engine/run/durations.test.ts`, test })
const postgres = `${source}/stores/postgres`
const outbox = (test: string): NamedTest => ({ path: `${source}/stores/sqlite/outbox/index.test.ts`, test })
const outboxOnPostgres = (test: string): NamedTest => ({ path: `${postgres}/outbox/index.pg.test.ts`, test })
const conforms = (test: string): NamedTest => ({ path: `${source}/stores/sqlite/conformance.test.ts`, test })

export const adminMutants: readonly Mutant[] = [
  {
    name: 'admin: a right is not asked for',
    patches: [
      {
        file: `${admin}/context.ts`,
        find: "if (!rightsOf(checkPerson(who)).includes(right)) return { kind: 'not-permitted', right }",
        replace: 'checkPerson(who)',
      },
    ],
    caughtBy: [service('refuse an act by the name of the right that is missing, and write the attempt down')],
  },
  {
    name: 'admin: a refused attempt is not written down',
    patches: [
      { file: `${admin}/context.ts`, find: 'async () => admin?.addEntry(entry)', replace: 'async () => void entry' },
    ],
    caughtBy: [service('refuse an act by the name of the right that is missing, and write the attempt down')],
  },
  {
    name: 'admin: a row of a hidden scope is shown',
    patches: [
      {
        file: `${admin}/context.ts`,
        find: 'return scopesOf(by)?.includes(scope) ?? true',
        replace: 'return scope !== scopesOf(by)?.[-1]',
      },
    ],
    caughtBy: [
      service('finds rows of other scopes nowhere, and cannot act on them'),
      routes('answers 404 about a row of a scope that a person may not see, as about one that is not there'),
    ],
  },
  {
    name: 'admin: one person proposes and approves',
    patches: [
      {
        file: `${admin}/proposals.ts`,
        find: "if (stored.by === who.name) return { kind: 'own-proposal' }",
        replace: "if (stored.by === '') return { kind: 'own-proposal' }",
      },
    ],
    caughtBy: [service('is never the one who proposed it')],
  },
  {
    name: 'admin: who approves need not have the right of the act',
    patches: [
      {
        file: `${admin}/proposals.ts`,
        find: "return rightsOf(who).includes(right) ? undefined : { kind: 'not-permitted', right }",
        replace: 'return right === undefined ? undefined : undefined',
      },
    ],
    caughtBy: [service('needs the right to approve, and the right of the act')],
  },
  {
    name: 'admin: no second person is needed',
    patches: [
      {
        file: `${admin}/acts.ts`,
        find: "return typeof approval === 'function' ? approval(row) : approval === 'always'",
        replace: "return typeof approval === 'function' && approval(row)",
      },
    ],
    caughtBy: [
      routes('refuses to settle inside the quarantine, asks for a second person after it, and lets that one decide'),
    ],
  },
  {
    name: 'admin: the quarantine is not asked for',
    patches: [
      {
        file: `${source}/stores/sqlite/admin/act.ts`,
        find: "if (state === 'unknown' && leftMs > 0) return { kind: 'quarantine-not-over', leftMs }",
        replace: 'void leftMs',
      },
    ],
    caughtBy: [conforms('refuses "never happened" inside the quarantine, and takes it after it')],
  },
  {
    name: 'admin: the version of the row is not compared',
    patches: [
      {
        file: `${source}/stores/shared/admin/version.ts`,
        find: 'return left.fence === right.fence && left.version === right.version',
        replace: 'return left.fence === right.fence',
      },
    ],
    caughtBy: [
      service('that another operator has settled has moved, and is shown as it is now'),
      routes('refuses an act without a version, and one with another version by 412 and the row as it is'),
    ],
  },
  {
    name: 'admin: a request that is repeated acts again',
    patches: [
      {
        file: `${source}/stores/sqlite/admin/act.ts`,
        find: "if (before !== undefined) return { kind: 'acted', auditId: before, repeated: true }",
        replace: 'void before',
      },
    ],
    caughtBy: [
      conforms('does an act once, however often its request is repeated, also after the row has moved or is gone'),
    ],
  },
  {
    name: 'admin: another site is let in by DELETE',
    patches: [
      {
        file: `${admin}/http/guard.ts`,
        find: "const harmless: readonly string[] = ['GET', 'HEAD']",
        replace: "const harmless: readonly string[] = ['GET', 'HEAD', 'DELETE']",
      },
    ],
    caughtBy: [guard('DELETE passes from the same origin only, unless it changes nothing or a token came with it')],
  },
  {
    name: 'admin: a site of the same domain is let in',
    patches: [
      {
        file: `${admin}/http/guard.ts`,
        find: "return site === 'same-origin'",
        replace: "return site.startsWith('same')",
      },
    ],
    caughtBy: [guard('POST passes from the same origin only, unless it changes nothing or a token came with it')],
  },
  {
    name: 'admin: Basic credentials need no origin',
    patches: [{ file: `${admin}/http/guard.ts`, find: '/^bearer +[^ ]/i', replace: '/^b[a-z]+ +[^ ]/i' }],
    caughtBy: [guard('POST passes from the same origin only, unless it changes nothing or a token came with it')],
  },
  {
    name: 'admin: a form can be sent',
    patches: [
      {
        file: `${admin}/http/guard.ts`,
        find: "return isJson(request) ? { kind: 'passed' }",
        replace: "return isJson(request) || host !== '' ? { kind: 'passed' }",
      },
    ],
    caughtBy: [guard('POST is refused with what a form can send')],
  },
  {
    name: 'admin: Host is not compared',
    patches: [
      {
        file: `${admin}/http/guard.ts`,
        find: 'if (host === undefined || !hosts.has(host))',
        replace: 'if (host === undefined || hosts.size === 0)',
      },
    ],
    caughtBy: [guard('GET is refused under every name but those of the list')],
  },
  {
    name: 'admin: nobody is let in',
    patches: [
      {
        file: `${admin}/http/routes.ts`,
        find: "if (who === null || who === undefined) return problem('not-authenticated')",
        replace: 'if (who === null || who === undefined) return { status: 200, body: {} }',
      },
    ],
    caughtBy: [guard('answers nobody, on any route, and acts for nobody')],
  },
  {
    name: 'admin: a key of the API is not kept',
    patches: [
      {
        file: `${admin}/http/routes.ts`,
        find: 'const asked = { name: who.name, key: field.key,',
        replace: 'const asked = { name: who.name, key: field.key + String(performance.now()),',
      },
    ],
    caughtBy: [routes('acts once for a key, answers its repetition alike, and refuses the key for another act')],
  },
  {
    name: 'admin: a duration is counted in the wrong bucket',
    patches: [
      {
        file: `${source}/engine/run/durations.ts`,
        find: 'if (ms <= upToMs) return',
        replace: 'if (ms < upToMs) return',
      },
    ],
    caughtBy: [durations('hold a duration under the first edge that it does not exceed')],
  },
  {
    name: 'admin: percentiles are of the process that wrote last',
    patches: [
      {
        file: `${source}/stores/sqlite/admin/fleet.ts`,
        find: 'DO UPDATE SET count = r.count + excluded.count',
        replace: 'DO UPDATE SET count = excluded.count',
      },
    ],
    caughtBy: [
      times('are those of all processes together, of every kind of work'),
      conforms('adds up what processes count in the same minute, by operation and metric'),
    ],
  },
  {
    name: 'admin: durations of one minute stand for the hour',
    patches: [{ file: `${source}/stores/sqlite/admin/fleet.ts`, find: 'SUM(r.count)', replace: 'MAX(r.count)' }],
    caughtBy: [conforms('adds the minutes up, of all processes, and leaves metrics out that were not asked for')],
  },
  {
    name: 'admin: an operator skips what is for approvers',
    patches: [
      {
        file: `${admin}/messages.ts`,
        find: "actingOn(context, attempt, { right: 'skip', isPart: false })",
        replace: "actingOn(context, attempt, { right: 'redrive', isPart: false })",
      },
    ],
    caughtBy: [service('is not skipped by an operator, nor without a reason, nor by who sees some scopes only')],
  },
  {
    name: 'admin: a skip without its entry of the audit',
    patches: [
      {
        file: `${source}/stores/sqlite/admin/skip.ts`,
        find: 'auditId: writeEntry(handle, skippedEntry(request, message)), repeated',
        replace: 'auditId: skippedEntry(request, message).act, repeated',
      },
    ],
    caughtBy: [
      outbox('names in the entry of a skip who, why, from where, the topic and the id that the consumer misses'),
    ],
  },
  {
    name: 'admin: a message that is not parked is skipped',
    patches: [
      {
        file: `${source}/stores/sqlite/admin/skip.ts`,
        find: 'WHERE p.id = ?1 AND p.parked_at_ms IS NOT NULL',
        replace: 'WHERE p.id = ?1',
      },
    ],
    caughtBy: [outbox('skips nothing that is not parked')],
  },
  {
    name: 'admin: nobody behind a skipped message is woken',
    patches: [
      {
        file: `${postgres}/admin/skip.ts`,
        find: 'if (aggregate !== null) await run(texts.wake, [lane, aggregate])',
        replace: 'if (aggregate === texts.wake) await run(texts.wake, [lane, aggregate])',
      },
    ],
    caughtBy: [outboxOnPostgres('skips a parked message: it is never delivered, and those behind it are, in order')],
  },
  {
    name: 'admin: a relay does not notice that the message before is just being skipped',
    patches: [
      {
        file: `${postgres}/outbox/settle.ts`,
        find: 'order by q.xid, q.id limit 1 for key share) q',
        replace: 'order by q.xid, q.id limit 1) q',
      },
    ],
    caughtBy: [
      outboxOnPostgres('forgets nobody who is set aside behind a message in the moment in which that is skipped'),
    ],
  },
  {
    name: 'admin: a skip is committed before its entry',
    patches: [
      {
        file: `${postgres}/admin/skip.ts`,
        find: 'if (row === undefined) return',
        replace: "await run('commit', [])\n  if (row === undefined) return",
      },
    ],
    caughtBy: [outboxOnPostgres('skips nothing when the entry of the audit cannot be written')],
  },
  {
    name: 'admin: who waits for a retry counts as behind a parked message',
    patches: [
      {
        file: `${source}/stores/sqlite/admin/lanes.ts`,
        find: 'SELECT q.parked_at_ms IS NOT NULL AND q.id < p.id FROM',
        replace: 'SELECT q.id < p.id FROM',
      },
    ],
    caughtBy: [outbox('counts nobody as behind a parked message who waits for another, or for nobody')],
  },
  {
    name: 'admin: a count of a lane that was cut looks whole',
    patches: [
      {
        file: `${source}/stores/shared/outbox/lane-state.ts`,
        find: 'more: isCut || found > laneCountMax',
        replace: 'more: isCut',
      },
    ],
    caughtBy: [outbox('counts to a thousand, and says that there are more')],
  },
]
