/** `adminRoutes`: the service over HTTP, as a fetch handler. Nothing is served without a person from `authorize`. */
import { isLatchkeyError, misconfigured } from '../../ports/errors.ts'
import type { ActSource } from '../../ports/faculties/admin.ts'
import { engine } from '../../engine/internal.ts'
import { createLatchkey } from '../../engine/latchkey.ts'
import { singleTenant } from '../../engine/request.ts'
import { readKeyField } from '../../wire/key-field.ts'
import type { Admin } from '../admin.ts'
import type { AdminHost } from '../context.ts'
import { createAdmin, type CreateAdminOptions } from '../create.ts'
import { checkPerson, type Person } from '../rights.ts'
import { type Answer, problem, respond } from './answer.ts'
import { type Body, bodyFault } from './body.ts'
import { guard } from './guard.ts'
import { type ConsoleFiles, pageResponse } from './page.ts'
import { readRoute } from './reads.ts'
import { type WriteRoute, writeRoute, type Writing } from './writes.ts'

export interface AdminRoutesOptions<Tx> extends CreateAdminOptions<Tx> {
  /**
   * Who asks, by the sign-in of your own application: a session, a token, a header of a proxy that you trust. Null: not signed in, and the answer is 401.
   * Required: there is no anonymous mode.
   */
  readonly authorize: (request: Request) => Person | null | Promise<Person | null>
  /** The names under which the routes are reached, as `Host` has them: `['ops.example.com', 'localhost:8081']`. Every other name is refused. */
  readonly hosts: readonly string[]
  /** The page, beside the API: `consoleFiles()` of `@latchkey/console`. Default: none, and only the API is served. */
  readonly console?: ConsoleFiles
  /** The most bytes of a body. Default 8 MiB: an export of a provider is a body. */
  readonly bodyBytesMax?: number
}

export type AdminHandler = (request: Request) => Promise<Response>

const bodyBytesDefault = 8 * 1_024 * 1_024

export function adminRoutes<Tx>(options: AdminRoutesOptions<Tx>): AdminHandler {
  const { authorize, hosts, bodyBytesMax = bodyBytesDefault, console: files, ...rest } = options ?? {}
  if (typeof authorize !== 'function') {
    throw misconfigured(
      'adminRoutes needs authorize: a function of the request that returns { name, role }, or null. There is no anonymous mode',
    )
  }
  if (
    !Array.isArray(hosts) ||
    hosts.length === 0 ||
    hosts.some(host => typeof host !== 'string' || !/^[^\s/@*]+$/.test(host))
  ) {
    throw misconfigured(
      `adminRoutes needs hosts: the names under which it is reached, such as ['ops.example.com'] or ['localhost:8081'] (got ${JSON.stringify(hosts)})`,
    )
  }
  const names = new Set(hosts.map(host => host.toLowerCase()))
  const serving: Serving = {
    ...{ authorize, bodyBytesMax, files, admin: createAdmin<Tx>(rest) },
    once: onceOf(rest.latchkey),
    report: reportOf(rest.latchkey),
  }
  return async request => {
    const guarded = guard(request, names)
    if (guarded.kind !== 'passed') return respond(problem(guarded.kind), request)
    const answer = await served(serving, request)
    return answer instanceof Response ? answer : respond(answer, request)
  }
}

interface Serving {
  readonly authorize: AdminRoutesOptions<unknown>['authorize']
  readonly bodyBytesMax: number
  readonly files: ConsoleFiles | undefined
  readonly admin: Admin
  readonly once: Once
  readonly report: (message: string, error: unknown) => void
}

function reportOf<Tx>(latchkey: AdminHost<Tx>): Serving['report'] {
  return (message, error) => latchkey[engine].telemetry.report(message, { error })
}

interface OnceRequest {
  readonly name: string
  readonly key: string
  readonly input: object
}

interface Once {
  /** Runs `work` once for this person and key, and answers every repetition alike. */
  run(request: OnceRequest, work: (requestId: string, notExecuted: () => void) => Promise<Answer>): Promise<Answer>
  idOf(request: Pick<OnceRequest, 'name' | 'key'>): string
}

const operation = 'admin.api'

/** The Idempotency-Key of a request is claimed on the same store as every other key, under an operation of its own. */
function onceOf<Tx>(latchkey: AdminHost<Tx>): Once {
  const { store, clock, telemetry } = latchkey[engine]
  const own = createLatchkey({ store, clock, telemetry, scope: singleTenant, maintenance: false })
  // The act itself is done once for its request id, so that what was interrupted may run again.
  const acts = own.guarded(operation, { onFailure: 'rerun' })
  const scopeOf = (name: string) => ['latchkey.admin', name]
  return {
    async run({ name, key, input }, work) {
      const stored = await acts.run({ scope: scopeOf(name), key, input }, async x =>
        JSON.stringify(await work(x.id, () => x.notExecuted())),
      )
      // Written three lines above.
      return JSON.parse(stored) as Answer
    },
    idOf: ({ name, key }) => own.identify({ scope: scopeOf(name), operation, key }),
  }
}

async function served(serving: Serving, request: Request): Promise<Answer | Response> {
  try {
    const who = await serving.authorize(request)
    if (who === null || who === undefined) return problem('not-authenticated')
    checkPerson(who)
    const { pathname, searchParams: query } = new URL(request.url)
    const path = pathOf(pathname)
    if (path === undefined) return pageOf(serving, request)
    const by = { who, source: sourceOf(serving, request) } as const
    if (request.method === 'GET' || request.method === 'HEAD')
      return (await readRoute({ admin: serving.admin, by, path, query })) ?? missing(writeRoute(path) !== undefined)
    const route = writeRoute(path)
    if (route === undefined) return problem('no-such-route')
    return request.method === 'POST'
      ? await write(serving, who, { request, route, path })
      : problem('method-not-allowed')
  } catch (error) {
    return failed(serving, error)
  }
}

/** After `authorize`: even the page is not served without a name. */
function pageOf({ files }: Serving, request: Request): Answer | Response {
  return (files && pageResponse(files, request)) ?? problem('no-such-route')
}

/** What a browser sends by itself comes from the page; a token comes from a program. */
function sourceOf({ files }: Serving, { headers }: Request): ActSource {
  return files !== undefined && headers.has('sec-fetch-site') && !headers.has('authorization') ? 'console' : 'api'
}

function missing(isThere: boolean): Answer {
  return problem(isThere ? 'method-not-allowed' : 'no-such-route')
}

/** Behind whatever prefix the routes are mounted under. */
function pathOf(pathname: string): readonly string[] | undefined {
  const at = pathname.indexOf('/api/v1/')
  if (at < 0) return undefined
  try {
    return pathname
      .slice(at + '/api/v1/'.length)
      .split('/')
      .map(decodeURIComponent)
  } catch {
    return undefined
  }
}

function failed({ report }: Serving, error: unknown): Answer {
  if (isLatchkeyError(error)) {
    if (error.code === 'key-reused') return problem('key-reused')
    if (error.code === 'in-progress') return problem('in-progress')
    if (error.code === 'scope-unresolved' || error.code === 'invalid-key')
      return problem('invalid', { detail: error.message })
    if (error.code === 'store-unavailable' || error.code === 'overloaded' || error.code === 'outcome-unknown')
      return problem('store-unavailable')
  }
  report('a request of an operator failed', error)
  return problem('failed')
}

interface Asked {
  readonly request: Request
  readonly route: WriteRoute
  readonly path: readonly string[]
}

async function write(serving: Serving, who: Person, { request, route, path }: Asked): Promise<Answer> {
  const body = await bodyOf(request, serving.bodyBytesMax)
  if (body === 'too-large') return problem('body-too-large')
  const fault = bodyFault(body, route.fields)
  if (fault !== undefined) return problem('invalid', { detail: fault })
  const version = versionOf(request)
  if (route.onRow && version === undefined) return problem('if-match-required')
  // Each of its fields is checked where it is used.
  const writing = (requestId: string): Writing => ({
    ...{
      admin: serving.admin,
      body: body as Body,
      version: version ?? '',
      by: { who, source: sourceOf(serving, request), requestId },
    },
    background: work => void work.catch((error: unknown) => serving.report('a bulk act of an operator stopped', error)),
  })
  if (route.isRead === true) return route.run(writing(''))
  const field = readKeyField(
    [...request.headers].filter(([name]) => name === 'idempotency-key').map(([, value]) => value),
  )
  if (field.kind !== 'key') return problem('idempotency-key-required')
  const asked = { name: who.name, key: field.key, input: { path, version: version ?? null, body } }
  if (route.isShown === true) return route.run(writing(serving.once.idOf(asked)))
  return serving.once.run(asked, async (requestId, notExecuted) => {
    const answer = await route.run(writing(requestId))
    // What was refused for now may be tried again under the same key.
    if (answer.status === 429 || answer.status === 503) notExecuted()
    return answer
  })
}

/** `"3.17"`, or the same as a weak one. */
function versionOf({ headers }: Request): string | undefined {
  return /^(?:W\/)?"(\d+\.\d+)"$/.exec(headers.get('if-match')?.trim() ?? '')?.[1]
}

async function bodyOf(request: Request, bytesMax: number): Promise<unknown> {
  const reader = request.body?.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
    bytes += next.value.byteLength
    if (bytes > bytesMax) return 'too-large'
    chunks.push(next.value)
  }
  try {
    return bytes === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return undefined
  }
}
