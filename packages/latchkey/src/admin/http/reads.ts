/** GET: lists and rows. */
import { isRowId } from '../../engine/request.ts'
import type { Admin, Asker } from '../admin.ts'
import type { Read } from '../results.ts'
import { type Answer, problem } from './answer.ts'
import { kindOf, numberOf, pageOf, textsOf, workFilter } from './fields.ts'

export interface Asked {
  readonly admin: Admin
  readonly by: Asker
  /** The path behind `api/v1/`, in its parts. */
  readonly path: readonly string[]
  readonly query: URLSearchParams
}

export function answerRead<T>(found: Read<T>): Answer {
  if (found.kind === 'found') return { status: 200, body: found.value }
  const { kind, ...more } = found
  return problem(kind, more)
}

const exportedMax = 10_000

/** Undefined: there is no such route. */
export async function readRoute({ admin, by, path, query }: Asked): Promise<Answer | undefined> {
  const [first, second, third, ...more] = path
  if (more.length > 0) return undefined
  if (second === undefined) return readTop({ admin, by, path, query })
  if (first === 'work' && second === 'groups' && third === undefined) {
    const kind = kindOf(query)
    return kind === undefined ? wrongKind : answerRead(await admin.groups(by, kind))
  }
  if (first === 'keys' && isRowId(second)) {
    if (third === undefined) return answerRead(await admin.key(by, second))
    return third === 'timeline' ? answerRead(await admin.timeline(by, second)) : undefined
  }
  if (first === 'bulk') {
    if (third === undefined) return answerRead(await admin.bulk(by, second))
    const after = numberOf(query, 'cursor')
    const page = { ...pageOf(query), ...(after === undefined ? {} : { after }) }
    return third === 'rows' ? answerRead(await admin.bulkRows(by, second, page)) : undefined
  }
  if (first === 'outbox' && second === 'lanes' && third === undefined) return answerRead(await admin.outboxLanes(by))
  if (third !== undefined || second !== 'parked') return undefined
  const page = { ...pageOf(query), ...textsOf(query, { after: 'cursor', consumer: 'consumer' }) }
  if (first === 'outbox') return answerRead(await admin.outboxParked(by, page))
  return first === 'inbox' ? answerRead(await admin.inboxParked(by, page)) : undefined
}

const wrongKind = problem('invalid', { detail: 'kind must be unknown, parked or overdue' })

async function readTop({ admin, by, path: [name], query }: Asked): Promise<Answer | undefined> {
  switch (name) {
    case 'session':
      return { status: 200, body: { ...admin.session(by), csrf: 'same-origin' } }
    case 'overview':
      return answerRead(await admin.overview(by))
    case 'operations':
      return answerRead(await admin.operations(by))
    case 'workers':
      return answerRead(await admin.workers(by))
    case 'rates': {
      const sinceMs = numberOf(query, 'since')
      return answerRead(await admin.rates(by, sinceMs === undefined ? {} : { sinceMs }))
    }
    case 'work': {
      const kind = kindOf(query)
      return kind === undefined ? wrongKind : answerRead(await admin.work(by, workFilter(query, kind)))
    }
    case 'outbox':
      return answerRead(await admin.outbox(by))
    case 'proposals':
      return answerRead(await admin.proposals(by))
    case 'audit':
      return answerRead(await admin.audit(by, auditFilter(query)))
    case 'audit.ndjson':
      return exported({ admin, by, query })
    default:
      return undefined
  }
}

function auditFilter(query: URLSearchParams) {
  const names = { who: 'who', id: 'identity', after: 'after', before: 'cursor' } as const
  return { ...pageOf(query), ...textsOf(query, names) }
}

/** Forward from `after`, up to a bound; the last line tells where to continue. */
async function exported({ admin, by, query }: Pick<Asked, 'admin' | 'by' | 'query'>): Promise<Answer> {
  const { before: _before, ...filter } = auditFilter(query)
  const lines: string[] = []
  let after: string | undefined = filter.after ?? '0'
  while (after !== undefined && lines.length < exportedMax) {
    const page: Awaited<ReturnType<Admin['audit']>> = await admin.audit(by, { ...filter, after, limit: 100 })
    if (page.kind !== 'found') return answerRead(page)
    lines.push(...page.value.items.map(entry => JSON.stringify(entry)))
    after = page.value.next
  }
  const next = after === undefined ? [] : [JSON.stringify({ next: after })]
  const text = [...lines, ...next].map(line => `${line}\n`).join('')
  return { status: 200, body: text, headers: { 'content-type': 'application/x-ndjson' } }
}
