/** Who may talk to the routes at all: the Host that was asked for, and where a browser's request comes from. */

/** The methods that change nothing, whatever they are sent to. */
const harmless: readonly string[] = ['GET', 'HEAD']

export type Guarded =
  | { readonly kind: 'passed' }
  /** The name in Host is not ours: a page of another name that was pointed at this address. */
  | { readonly kind: 'host-not-allowed' }
  | { readonly kind: 'cross-site' }
  | { readonly kind: 'not-json' }

/**
 * Every request: a Host of the list. Every method but GET and HEAD: a request of the same origin, by `Sec-Fetch-Site`, or by `Origin` where the browser
 * sends none, which is on plain HTTP; and JSON, which no form can send. A Bearer token is not sent by a browser by itself, so that its bearer need not
 * come from a page; a cookie and Basic credentials are.
 */
export function guard(request: Request, hosts: ReadonlySet<string>): Guarded {
  const host = hostOf(request)
  if (host === undefined || !hosts.has(host)) return { kind: 'host-not-allowed' }
  if (harmless.includes(request.method)) return { kind: 'passed' }
  if (!hasBearer(request) && !isSameOrigin(request, host)) return { kind: 'cross-site' }
  return isJson(request) ? { kind: 'passed' } : { kind: 'not-json' }
}

function hostOf({ headers, url }: Request): string | undefined {
  const named = headers.get('host') ?? (URL.canParse(url) ? new URL(url).host : undefined)
  return named?.trim().toLowerCase()
}

function hasBearer({ headers }: Request): boolean {
  return /^bearer +[^ ]/i.test(headers.get('authorization') ?? '')
}

function isSameOrigin({ headers }: Request, host: string): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = headers.get('origin')
  if (origin === null || !URL.canParse(origin)) return false
  const { protocol, host: of } = new URL(origin)
  return /^https?:$/.test(protocol) && of.toLowerCase() === host
}

function isJson({ headers }: Request): boolean {
  return /^application\/json *(;|$)/i.test(headers.get('content-type') ?? '')
}

/** On every answer, also those that refuse. No answer of ours holds a script. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}
