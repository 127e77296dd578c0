/** Through an admin API: rights and the name of the person are the server's business. */
import type { BulkRow, FindWhat } from 'latchkey/admin'
import type { Context } from '../program/context.ts'
import { CliError, exits } from '../program/exit.ts'
import { pause } from '../program/pause.ts'
import type { Desk } from './desk.ts'
import { type Api, type ApiAnswer, type ApiRequest, apiOf } from './http.ts'

export function remoteDesk(context: Context, server: string): Desk {
  const api = apiOf(context, server)
  const read = async (path: string, query: ApiRequest['query'] = {}) => readOf(await api({ path, query }))
  const act = async (path: string, body: object, version?: string) =>
    actOf(await api({ path, body, ...(version === undefined ? {} : { version }) }))
  const onRow = (what: string) => (given: { id: string; version: string; reason: string }) => {
    const { id, version, ...body } = given
    return act(`keys/${encodeURIComponent(id)}/${what}`, body, version)
  }
  const calls = {
    as: `through ${server}`,
    session: async () => bodyOrThrow(await api({ path: 'session' })),
    overview: () => read('overview'),
    operations: () => read('operations'),
    workers: () => read('workers'),
    rates: (options: { sinceMs?: number } = {}) => read('rates', { since_ms: options.sinceMs }),
    work: ({ olderThanMs, after, scope, ...filter }: Parameters<Desk['work']>[0]) =>
      read('work', { ...filter, scope: scopeParam(scope), older_than: olderThanMs, cursor: after }),
    groups: (kind: string) => read('work/groups', { kind }),
    find: async (what: FindWhat) => readOf(await api({ path: 'keys/lookup', body: what, isRead: true })),
    key: (id: string) => read(`keys/${encodeURIComponent(id)}`),
    timeline: (id: string) => read(`keys/${encodeURIComponent(id)}/timeline`),
    reveal: onRow('reveal'),
    lookUp: onRow('reconcile'),
    settle: onRow('settle'),
    park: onRow('park'),
    resume: onRow('resume'),
    take: onRow('take'),
    note: onRow('note'),
    forget: onRow('forget'),
    outbox: () => read('outbox'),
    outboxParked: ({ limit, after }: { limit?: number; after?: string } = {}) =>
      read('outbox/parked', { limit, cursor: after }),
    redriveOutbox: ({ position, reason }: { position: string; reason: string }) =>
      act(`outbox/parked/${encodeURIComponent(position)}/redrive`, { reason }),
    inboxParked: ({ limit, after, consumer }: { limit?: number; after?: string; consumer?: string } = {}) =>
      read('inbox/parked', { limit, cursor: after, consumer }),
    redriveInbox: ({ id, ...body }: { id: string; reason: string }) =>
      act(`inbox/parked/${encodeURIComponent(id)}/redrive`, body),
    discardInbox: ({ id, ...body }: { id: string; reason: string }) =>
      act(`inbox/parked/${encodeURIComponent(id)}/discard`, body),
    proposals: () => read('proposals'),
    approve: ({ proposalId, reason }: { proposalId: string; reason: string }) =>
      act(`proposals/${encodeURIComponent(proposalId)}/approve`, { reason }),
    reject: ({ proposalId, reason }: { proposalId: string; reason: string }) =>
      act(`proposals/${encodeURIComponent(proposalId)}/reject`, { reason }),
    planBulk: (given: object) => act('bulk', given),
    startBulk: (given: Parameters<Desk['startBulk']>[0]) => startBulk(context, api, given),
    cancelBulk: ({ bulkId }: { bulkId: string }) => act(`bulk/${encodeURIComponent(bulkId)}/cancel`, {}),
    bulk: (bulkId: string) => read(`bulk/${encodeURIComponent(bulkId)}`),
    bulkRows: (bulkId: string, page: { limit?: number; after?: number } = {}) =>
      read(`bulk/${encodeURIComponent(bulkId)}/rows`, { limit: page.limit, cursor: page.after }),
    audit: ({ id, ...filter }: { id?: string; who?: string; after?: string; before?: string; limit?: number } = {}) =>
      read('audit', { ...filter, identity: id }),
  }
  // The server answers with the values of `Admin`, as JSON; its version is the path's.
  return calls as unknown as Desk
}

function scopeParam(scope: unknown): string | undefined {
  if (scope === undefined) return undefined
  return typeof scope === 'string' ? scope : JSON.stringify(scope)
}

/** The body of a read is the value; that of an act is what it came to. */
function readOf(answer: ApiAnswer): object {
  return answer.status < 300 ? { kind: 'found', value: answer.body } : refusalOf(answer)
}

function actOf(answer: ApiAnswer): object {
  // Checked by its content type; the API's own version of the values.
  return answer.status < 300 ? (answer.body as object) : refusalOf(answer)
}

/** A problem has the kind of the refusal as its code, and the rest of the refusal beside it. */
function refusalOf({ status, body }: ApiAnswer): object {
  const { code, detail, title, ...rest } = (body ?? {}) as Record<string, unknown>
  const text = textOf(detail) ?? textOf(title) ?? `status ${status}`
  if (status === 401) throw new CliError(exits.refused, 'unauthorized', `the server does not know this token: ${text}`)
  if (status >= 500) {
    throw new CliError(exits.unreachable, textOf(code) ?? 'unreachable', `the server answered ${status}: ${text}`)
  }
  return { why: text, ...rest, kind: textOf(code) ?? 'invalid' }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function bodyOrThrow(answer: ApiAnswer): unknown {
  if (answer.status < 300) return answer.body
  throw new CliError(exits.refused, 'refused', String((refusalOf(answer) as { why?: string }).why))
}

const pollMs = 500

/** The server runs it; this asks how far it is. */
async function startBulk(
  context: Context,
  api: Api,
  { bulkId, signal, onRow }: Parameters<Desk['startBulk']>[0],
): Promise<unknown> {
  const path = `bulk/${encodeURIComponent(bulkId)}`
  const started = await api({ path: `${path}/start`, body: {} })
  if (started.status >= 300) return refusalOf(started)
  let after = -1
  for (;;) {
    const rows =
      (
        readOf(await api({ path: `${path}/rows`, query: { cursor: after < 0 ? undefined : after } })) as {
          value?: readonly BulkRow[]
        }
      ).value ?? []
    const ended = rows.filter(({ result }) => result !== undefined && result !== null)
    for (const row of ended) onRow?.(row)
    after = ended.at(-1)?.at ?? after
    const plan = (await api({ path })).body as { state: string }
    if (ended.length === 0 && plan.state !== 'running' && plan.state !== 'planned') return { kind: 'started', plan }
    if (signal?.aborted === true) return actOf(await api({ path: `${path}/cancel`, body: {} }))
    if (ended.length === 0) await pause(pollMs, context.signal)
  }
}
