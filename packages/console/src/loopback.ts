/** The console for one person at this machine: a link that lets one browser in, once. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { type AdminHandler, adminRoutes, type AdminRoutesOptions, type ConsoleFiles, type Person } from 'latchkey/admin'
import { consoleFiles } from './files.ts'

export interface LoopbackOptions<Tx> extends Omit<AdminRoutesOptions<Tx>, 'authorize' | 'hosts' | 'console'> {
  /** Who acts. The audit has this name. */
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
  const isSignedIn = (request: Request) => isSame(cookieOf(request, cookieFor(host())), session)
  return {
    query: `?token=${token}`,
    async handler(request) {
      const shown = new URL(request.url).searchParams.get('token')
      if (shown !== null && !isUsed && isSame(shown, token)) {
        isUsed = true
        return signedIn(cookieFor(host()), session)
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

/** Browsers keep cookies by name and not by port: two consoles of one machine must not sign each other out. */
function cookieFor(host: string): string {
  return `latchkey_console_${/:(\d+)$/.exec(host)?.[1] ?? 'default'}`
}

function cookieOf({ headers }: Request, cookie: string): string {
  return new RegExp(`(?:^|; )${cookie}=([\\w-]+)`).exec(headers.get('cookie') ?? '')?.[1] ?? ''
}

const headers = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' }

/** Without a path of its own the cookie belongs to the mount, wherever that is. */
function signedIn(cookie: string, session: string): Response {
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
