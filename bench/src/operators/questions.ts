/** What operators ask, as the console and the command line ask it. */
import type { Latchkey } from 'latchkey'
import { type Admin, type Asker, createAdmin, type Read, type WorkFilter } from 'latchkey/admin'
import { replayedPrefix } from '../load/request.ts'
import { operationName, scope } from '../server/operations.ts'
import { person } from './acts.ts'
import { causes, referenceOf, tenantOf } from './shop.ts'

export interface Question {
  readonly name: string
  readonly kind: 'find' | 'list'
  /** About another key each time, where it is about one. */
  ask(n: number): Promise<Read<unknown>>
}

export interface Sizes {
  readonly keys: number
  readonly unknown: number
}

const by: Asker = person(0)

export async function questionsOn<Tx>(latchkey: Latchkey<Tx, unknown>, sizes: Sizes): Promise<Question[]> {
  const admin = createAdmin({ latchkey })
  return [...aboutKeys(admin, latchkey, sizes), ...(await queues(admin, sizes)), ...others(admin)]
}

/** Spread over the table, as customers ask. Of the unknown rows, those of phased work: they have the most to show. */
function aboutKeys<Tx>(admin: Admin, latchkey: Latchkey<Tx, unknown>, { keys, unknown }: Sizes): Question[] {
  const scattered = (n: number) => Math.imul(n + 1, 0x9e3779b1) >>> 0
  const completed = (n: number) => ({ scope, operation: operationName, key: `${replayedPrefix}${scattered(n) % keys}` })
  const phased = (n: number) => (scattered(n) % Math.floor(unknown / 3)) * 3
  const idOf = (n: number) =>
    latchkey.identify({ scope: tenantOf(n), operation: 'payments.create', key: `unknown-${n}` })
  return [
    { name: 'find by scope, operation and key', kind: 'find', ask: n => admin.find(by, completed(n)) },
    { name: 'find by reference', kind: 'find', ask: n => admin.find(by, { reference: referenceOf(phased(n)) }) },
    { name: 'key with an open effect', kind: 'list', ask: n => admin.key(by, idOf(phased(n))) },
    { name: 'its timeline', kind: 'list', ask: n => admin.timeline(by, idOf(phased(n))) },
  ]
}

async function queues(admin: Admin, { unknown }: Sizes): Promise<Question[]> {
  const deep = await cursorAfter(admin, { kind: 'unknown' }, unknown / 2)
  const deepParked = await cursorAfter(admin, { kind: 'parked' }, unknown / 50)
  const work = (name: string, filter: WorkFilter): Question => ({
    ...{ name, kind: 'list', ask: () => admin.work(by, filter) },
  })
  return [
    work('unknown', { kind: 'unknown' }),
    work('unknown, half way down', { kind: 'unknown', after: deep }),
    work('unknown of an operation', { kind: 'unknown', operation: 'refunds.create' }),
    work('unknown of an operation, half way down', { kind: 'unknown', operation: 'refunds.create', after: deep }),
    work('unknown of a scope', { kind: 'unknown', scope: tenantOf(7) }),
    work('unknown with a cause', { kind: 'unknown', cause: causes[1] }),
    work('unknown of a scope, with a cause', { kind: 'unknown', scope: tenantOf(7), cause: causes[3] }),
    work('unknown of a person', { kind: 'unknown', owner: person(7).who.name }),
    work('unknown, older than 6 h', { kind: 'unknown', olderThanMs: 6 * 3_600_000 }),
    work('parked', { kind: 'parked' }),
    work('parked, further down', { kind: 'parked', after: deepParked }),
    work('parked of a scope', { kind: 'parked', scope: tenantOf(7) }),
    work('overdue', { kind: 'overdue' }),
    work('overdue of a scope', { kind: 'overdue', scope: tenantOf(7) }),
  ]
}

const pageRows = 20

/** Where the list continues after so many rows. */
async function cursorAfter(admin: Admin, filter: WorkFilter, rows: number): Promise<string> {
  let after: string | undefined
  for (let seen = 0; seen < rows; seen += pageRows) {
    const page = await admin.work(by, { ...filter, limit: pageRows, ...(after === undefined ? {} : { after }) })
    after = page.kind === 'found' ? page.value.next : undefined
  }
  if (after === undefined) throw new Error(`the list of ${filter.kind} rows ends before ${rows}`)
  return after
}

function others(admin: Admin): Question[] {
  const list = (name: string, ask: Question['ask']): Question => ({ name, kind: 'list', ask })
  return [
    list('overview', () => admin.overview(by)),
    list('groups of unknown', () => admin.groups(by, 'unknown')),
    list('groups of parked', () => admin.groups(by, 'parked')),
    list('groups of overdue', () => admin.groups(by, 'overdue')),
    list('operations', async () => admin.operations(by)),
    list('workers', () => admin.workers(by)),
    list('outbox and its lanes', () => admin.outbox(by)),
    list('parked messages', () => admin.outboxParked(by)),
    list('proposals', () => admin.proposals(by)),
    list('audit, the newest', () => admin.audit(by)),
    list('audit of a person', () => admin.audit(by, { who: person(7).who.name })),
  ]
}
