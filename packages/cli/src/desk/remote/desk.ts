/** Through an admin API: rights and the name of the person are the server's business. */
import type { Scope } from 'latchkey'
import type { FindWhat } from 'latchkey/admin'
import type { Context } from '../../program/context.ts'
import { CliError, exits, usage } from '../../program/exit.ts'
import type { Desk } from '../desk.ts'
import { type ApiAnswer, type ApiRequest, apiOf } from './http.ts'
import { actOf, readOf } from './answers.ts'
import { startRemoteBulk } from './bulk.ts'

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
    rates: (options: { sinceMs?: number } = {}) => read('rates', { since: options.sinceMs }),
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
    outboxLanes: () => read('outbox/lanes'),
    outboxParked: ({ limit, after }: { limit?: number; after?: string } = {}) =>
      read('outbox/parked', { limit, cursor: after }),
    redriveOutbox: ({ position, reason }: { position: string; reason: string }) =>
      act(`outbox/parked/${encodeURIComponent(position)}/redrive`, { reason }),
    skipOutbox: ({ position, reason }: { position: string; reason: string }) =>
      act(`outbox/parked/${encodeURIComponent(position)}/skip`, { reason }),
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
    startBulk: (given: Parameters<Desk['startBulk']>[0]) => startRemoteBulk({ api, clock: context.clock }, given),
    cancelBulk: ({ bulkId }: { bulkId: string }) => act(`bulk/${encodeURIComponent(bulkId)}/cancel`, {}),
    bulk: (bulkId: string) => read(`bulk/${encodeURIComponent(bulkId)}`),
    bulkRows: (bulkId: string, page: { limit?: number; after?: number } = {}) =>
      read(`bulk/${encodeURIComponent(bulkId)}/rows`, { limit: page.limit, cursor: page.after }),
    audit: ({
      id,
      before,
      ...filter
    }: { id?: string; who?: string; after?: string; before?: string; limit?: number } = {}) =>
      read('audit', { ...filter, identity: id, cursor: before }),
  }
  // The server answers with the values of `Admin`, as JSON; its version is the path's.
  return calls as unknown as Desk
}

/** In an address a scope is one text; of several parts it could not be told from one with a slash. */
function scopeParam(scope: Scope | undefined): string | undefined {
  if (scope === undefined || typeof scope === 'string') return scope
  const [only, ...others] = scope
  if (others.length === 0) return only
  throw usage('a scope of several parts cannot be a filter of a list through --server: filter by operation or cause')
}

function bodyOrThrow(answer: ApiAnswer): unknown {
  if (answer.status < 300) return answer.body
  throw new CliError(exits.refused, 'refused', String((actOf(answer) as { why?: string }).why))
}
