/** The console for one person at this machine: a link that lets one browser in, once. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { type AdminHandler, adminRoutes, type AdminRoutesOptions, type ConsoleFiles, type Person } from 'latchkey/admin'
import { consoleFiles } from './files.ts'

export interface LoopbackOptions<Tx> extends Omit<AdminRoutesOptions<Tx>, 'authorize' | 'hosts' | 'console'> {
  /** Who acts. The name stands in the audit. */
  readonly person: Person
  /** Where it listens, as a browser names it: `127.0.0.1:8081`. Read at the first request, so that the kernel may choose the port. */
  readonly host: () => string
  /** Default: those of this package. */
  readonly files?: ConsoleFiles
}

export interface LoopbackConsole {
  readonly handler: AdminHandler
  /** To be added to the address of the mount, which ends with a slash. Valid for one use. */
  readonly query: string
}

const sessionSeconds = 8 * 3_600

/**
 * Being at this machine is no credential: other users and every web page reach its ports as well. The token in the link is, once; then a cookie is, for
 * eight hours.
 */
export function loopbackConsole<Tx>(given: LoopbackOptions<Tx>): LoopbackConsole {
  const { person, host, files = consoleFiles(), ...options } = given
  const token = newSecret()
  const session = newSecret()
  let isUsed = false
  let routes: AdminHandler | undefined
  const isSignedIn = (request: Request) => isSame(cookieOf(request), session)
  return {
    query: `?token=${token}`,
    async handler(request) {
      const shown = new URL(request.url).searchParams.get('token')
      if (shown !== null && !isUsed && isSame(shown, token)) {
        isUsed = true
        return signedIn(session)
      }
      routes ??= adminRoutes<Tx>({
        ...options,
        hosts: [host()],
        console: files,
        authorize: asked => (isSignedIn(asked) ? person : null),
      })
      // An answer to a person, not to a program.
      if (!isSignedIn(request) && !new URL(request.url).pathname.includes('/api/v1/')) return notSignedIn()
      return shown === null ? routes(request) : withoutToken()
    },
  }
}

function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

function isSame(given: string, secret: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(secret)]
  return left.length === right.length && timingSafeEqual(left, right)
}

const cookie = 'latchkey_console'

function cookieOf({ headers }: Request): string {
  return new RegExp(`(?:^|; )${cookie}=([\\w-]+)`).exec(headers.get('cookie') ?? '')?.[1] ?? ''
}

const headers = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' }

/** Without a path of its own the cookie belongs to the mount, wherever that is. */
function signedIn(session: string): Response {
  const value = `${cookie}=${session}; HttpOnly; SameSite=Strict; Max-Age=${sessionSeconds}`
  return new Response(null, { status: 303, headers: { ...headers, 'set-cookie': value, location: './' } })
}

function withoutToken(): Response {
  return new Response(null, { status: 303, headers: { ...headers, location: './' } })
}

function notSignedIn(): Response {
  const text =
    'Open the link that was printed at the start. It lets one browser in, once; a new start prints a new one.\n'
  return new Response(text, { status: 401, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' } })
}
