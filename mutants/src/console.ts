/** Known bugs in how the console is served: a link that lets in twice, a session that anybody has, other names of the machine, scripts that are not the page's. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/console/src'
const loopback = (test: string): NamedTest => ({ path: 'packages/console/test/loopback.test.ts', test })
const guard = (test: string): NamedTest => ({ path: 'packages/latchkey/test/admin/guard.test.ts', test })

export const consoleMutants: readonly Mutant[] = [
  {
    name: 'console: the link lets a second browser in',
    patches: [{ file: `${source}/loopback.ts`, find: 'isUsed = true\n', replace: 'isUsed = false\n' }],
    caughtBy: [loopback('lets one browser in by its link, and no second one')],
  },
  {
    name: 'console: any token signs in',
    patches: [
      {
        file: `${source}/loopback.ts`,
        find: 'shown !== null && !isUsed && isSame(shown, token)',
        replace: 'shown !== null && !isUsed && shown.length === token.length',
      },
    ],
    caughtBy: [loopback('lets nobody in without the link, whatever they make up')],
  },
  {
    name: 'console: any session is taken',
    patches: [
      {
        file: `${source}/loopback.ts`,
        find: 'isSame(cookieOf(request), session)',
        replace: 'cookieOf(request).length === session.length',
      },
    ],
    caughtBy: [loopback('lets nobody in without the link, whatever they make up')],
  },
  {
    name: 'console: the session of the link does not end',
    patches: [{ file: `${source}/loopback.ts`, find: '; Max-Age=${sessionSeconds}', replace: '' }],
    caughtBy: [loopback('lets one browser in by its link, and no second one')],
  },
  {
    name: 'console: other names of this machine are let in',
    patches: [
      {
        file: `${source}/loopback.ts`,
        find: 'hosts: [host()],',
        replace: "hosts: [host(), 'evil.example'],",
      },
    ],
    caughtBy: [loopback('is closed to other names of this machine, also with the cookie')],
  },
  {
    name: 'console: a script in the text of a row may run',
    patches: [
      {
        file: 'packages/latchkey/src/admin/http/guard.ts',
        find: "script-src 'self';",
        replace: "script-src 'self' 'unsafe-inline';",
      },
    ],
    caughtBy: [guard('protects every answer by its headers, also one that refuses')],
  },
]
