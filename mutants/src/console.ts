/** Known bugs in how the console is served: a link that lets in twice, a session that anybody has, other names of the machine, scripts that are not the page's; and in the page: what it asks, sends, shows and keeps. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/console/src'
const loopback = (test: string): NamedTest => ({ path: 'packages/console/test/loopback.test.ts', test })
const page = 'packages/console/page'
const acts = (test: string): NamedTest => ({ path: 'packages/console/test/acts.browser.test.ts', test })
const live = (test: string): NamedTest => ({ path: 'packages/console/test/live.browser.test.ts', test })
const long = (test: string): NamedTest => ({ path: 'packages/console/test/long-list.browser.test.ts', test })
const moved = acts('is refused on a row that moved behind its dialog, and what was typed is still there')
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
        find: 'isSame(cookieOf(request, cookieFor(host())), session)',
        replace: 'cookieOf(request, cookieFor(host())).length === session.length',
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
  {
    name: 'console: two consoles of one machine share a cookie',
    patches: [
      {
        file: `${source}/loopback.ts`,
        find: "`latchkey_console_${/:(\\d+)$/.exec(host)?.[1] ?? 'default'}`",
        replace: "host === '' ? '' : 'latchkey_console_8081'",
      },
    ],
    caughtBy: [loopback('leaves the session of another console on this machine alone')],
  },
  {
    name: 'console: every name of the server is let in',
    patches: [
      {
        file: 'packages/latchkey/src/admin/http/guard.ts',
        find: 'host === undefined || !hosts.has(host)',
        replace: 'host === undefined || hosts.size === 0',
      },
    ],
    caughtBy: [guard('is refused under every name but those of the list')],
  },
  {
    name: 'console: the page has no content security policy',
    patches: [
      {
        file: 'packages/latchkey/src/admin/http/page.ts',
        find: "const headers = { ...securityHeaders, 'content-type': file.type }",
        replace: "const headers = { 'content-type': file.type }",
      },
    ],
    caughtBy: [
      {
        path: 'packages/console/test/serve.test.ts',
        test: 'sends the page with a policy that lets no other script run',
      },
    ],
  },
  {
    name: 'console page: it asks while nobody looks',
    patches: [
      {
        file: `${page}/api/poll.ts`,
        find: 'const mustWait = isOfDialog ? document.hidden : isHeld()',
        replace: 'const mustWait = isOfDialog ? false : holds.size > 0',
      },
    ],
    caughtBy: [live('asks nothing while nobody looks, and asks when somebody looks again')],
  },
  {
    name: 'console page: a plan stands still after somebody looked elsewhere',
    patches: [
      {
        file: `${page}/api/poll.ts`,
        find: 'for (const goOn of pollers) goOn()',
        replace: 'if (!isHeld()) for (const goOn of pollers) goOn()',
      },
    ],
    caughtBy: [live('shows the end of a plan to a person who looked elsewhere meanwhile')],
  },
  {
    name: 'console page: the text of a row is HTML',
    patches: [
      {
        file: `${page}/work/columns.tsx`,
        find: "cell: ({ description }) => description ?? '–'",
        replace: "cell: ({ description }) => <span dangerouslySetInnerHTML={{ __html: description ?? '–' }} />",
      },
    ],
    caughtBy: [acts('shows what a customer wrote as text, also what is revealed')],
  },
  {
    name: 'console page: stored bytes are HTML',
    patches: [
      {
        file: `${page}/key/reveal-dialog.tsx`,
        find: '<pre tabIndex={0}>{storedText(shown.body)}</pre>',
        replace: '<pre dangerouslySetInnerHTML={{ __html: storedText(shown.body) }} />',
      },
    ],
    caughtBy: [acts('shows what a customer wrote as text, also what is revealed')],
  },
  {
    name: 'console page: an act is sent without the version that was read',
    patches: [
      {
        file: `${page}/api/request.ts`,
        find: '...(version === undefined ? {} : { \'if-match\': `"${version}"` }),',
        replace: '...(version === undefined ? {} : {}),',
      },
    ],
    caughtBy: [moved],
  },
  {
    name: 'console page: an act is about a version that nobody has read',
    patches: [
      { file: `${page}/key/act-dialog.tsx`, find: 'const [row] = useState(given)', replace: 'const row = given' },
    ],
    caughtBy: [moved],
  },
  {
    name: 'console page: what was typed is lost with a refusal',
    patches: [
      {
        file: `${page}/key/act-dialog.tsx`,
        find: "if (answer.kind !== 'ok') return\n",
        replace: "if (answer.kind !== 'ok') return setReason('')\n",
      },
    ],
    caughtBy: [moved],
  },
  {
    name: 'console page: the path of the mount is ignored',
    patches: [
      {
        file: `${page}/api/request.ts`,
        find: "new URL('api/v1/', document.baseURI)",
        replace: "new URL('/api/v1/', document.baseURI)",
      },
    ],
    caughtBy: [live('asks nothing while nobody looks, and asks when somebody looks again')],
  },
  {
    name: 'console page: acts are offered on a row that is gone',
    patches: [
      {
        file: `${page}/key/key.tsx`,
        find: "row !== undefined && key.problem?.code === 'not-found'",
        replace: "row === undefined && key.problem?.code === 'not-found'",
      },
    ],
    caughtBy: [acts('is not offered any more on a row that was forgotten')],
  },
  {
    name: 'console page: the focus is lost with the button of an act',
    patches: [{ file: `${page}/app.tsx`, find: '  useKeptFocus(box)\n', replace: '' }],
    caughtBy: [acts('leaves the focus at the heading where its button is gone')],
  },
  {
    name: 'console page: the screen changes under its reader',
    patches: [
      {
        file: `${page}/app.tsx`,
        find: 'const route = useRoute()\n',
        replace:
          "const asked = useRoute()\n  const route = asked.screen === 'unknown' && overview.value?.unknown.count === 0 ? { ...asked, screen: 'now' } : asked\n",
      },
    ],
    caughtBy: [live('stays on its screen when the last unknown outcome is settled')],
  },
  {
    name: 'console page: the bar of acts hides the row that has the focus',
    patches: [{ file: `${page}/style.css`, find: '  scroll-padding-bottom: 6rem;\n', replace: '' }],
    caughtBy: [long('shows the row that has the focus above the bar of acts')],
  },
]
