/** Lists and rows. Everything comes from a queue, an index or a primary key; nothing counts the keys. */
import type { AdminRecords, OperatorEntry, WorkKind } from '../ports/faculties/admin.ts'
import type { KeyRecord } from '../ports/store.ts'
import { identify, isRowId } from '../engine/request.ts'
import { inspectedRow, type InspectedRow } from '../engine/inspected-row.ts'
import { referenceFault } from '../engine/run/references.ts'
import { counted } from '../engine/store/rates.ts'
import type { Actor, Admin, Asker, FindWhat } from './admin.ts'
import { type ActPlan, actOn } from './acts.ts'
import { figureMetrics, lastHourOf } from './operation-figures.ts'
import { whyNot } from './outcome.ts'
import {
  type AdminContext,
  isRefusal,
  notViewable,
  permitted,
  quarantines,
  scopesOf,
  sees,
  visibleRow,
} from './context.ts'
import { coreEntries, noActs } from './core.ts'
import type {
  AdminKey,
  AdminRow,
  AuditLineOfOperators,
  OperationView,
  Overview,
  Page,
  Read,
  Refusal,
  Revealed,
  TimelineEntry,
} from './results.ts'
import { type Right, rights, rightsOf } from './rights.ts'
import { currentView } from './view.ts'
import { coreWork, groups, pageSize, sum, work } from './work.ts'

const hourMs = 3_600_000
/** Rows of one reference that are shown. */
const referredMax = 100

type Reads = Pick<
  Admin,
  | 'session'
  | 'overview'
  | 'operations'
  | 'workers'
  | 'rates'
  | 'work'
  | 'groups'
  | 'find'
  | 'key'
  | 'timeline'
  | 'reveal'
  | 'audit'
>

export async function read<T>(
  context: AdminContext,
  by: Asker,
  run: (admin: AdminRecords) => Promise<T>,
): Promise<Read<T>> {
  const admin = permitted(context, by, 'view')
  return isRefusal(admin) ? admin : { kind: 'found', value: await context.call(() => run(admin)) }
}

export function reads(context: AdminContext): Reads {
  const { store } = context
  return {
    session: by => ({
      name: by.who.name,
      rights: rightsOf(by.who),
      limitScopes: scopesOf(by),
      environment: context.options.environment,
      missing: ['admin', 'references', 'reconciliation', 'outbox', 'inbox'].filter(
        faculty => !store.traits.faculties.some(each => each === faculty),
      ),
    }),
    overview: by => read(context, by, admin => overview(context, by, admin)),
    async operations(by) {
      const admin = permitted(context, by, 'view')
      if (!isRefusal(admin)) return { kind: 'found', value: await operations(context, by, admin) }
      // What is declared can be said without tables.
      return admin.kind === 'not-permitted' ? admin : { kind: 'found', value: await operations(context, by) }
    },
    workers: by => read(context, by, admin => admin.workers()),
    rates: (by, { sinceMs = hourMs } = {}) =>
      read(context, by, admin => admin.rates({ sinceMs, metrics: [...counted] })),
    work: (by, filter) =>
      store.admin === undefined
        ? coreWork(context, by, filter)
        : read(context, by, admin => work(context, by, { ...filter, admin })),
    groups: (by, kind) => read(context, by, async admin => ({ kind, ...(await groups(context, by, { admin, kind })) })),
    find: (by, what) => find(context, by, what),
    key: (by, id) => key(context, by, id),
    timeline: (by, id) => timeline(context, by, id),
    reveal: (by, given) => reveal(context, by, given),
    async audit(by, { who, id, after, before, limit } = {}) {
      const size = pageSize(limit)
      const page = await read(context, by, async (admin): Promise<Page<AuditLineOfOperators>> => {
        const wrong =
          [after, before].some(at => at !== undefined && !/^\d{1,18}$/.test(at)) || (id !== undefined && !isRowId(id))
        if (wrong) return { items: [], next: undefined, partial: false }
        const found = await admin.entries({ by: who, id, after, before, limit: size + 1 })
        const items = found.slice(0, size)
        return { items, next: found.length > size ? items.at(-1)?.auditId : undefined, partial: false }
      })
      if (page.kind !== 'found' || scopesOf(by) === undefined) return page
      const seen = await Promise.all(page.value.items.map(entry => seesEntry(context, by, entry)))
      return { ...page, value: { ...page.value, items: page.value.items.filter((_, at) => seen[at]) } }
    },
  }
}

/** Entries about other scopes are hidden, and those whose scope is not known any more. */
async function seesEntry(context: AdminContext, by: Asker, { id }: OperatorEntry): Promise<boolean> {
  return id !== undefined && (await visibleRow(context, by, id)) !== undefined
}

async function operations(context: AdminContext, by: Asker, admin?: AdminRecords): Promise<readonly OperationView[]> {
  const { kinds, retentionOf, leaseMsOf, onFailureOf } = context.latchkey
  const sums = await context.call(async () => admin?.rateSums({ sinceMs: hourMs, metrics: figureMetrics }))
  // What a person does not see is not counted for them either.
  const unknown = scopesOf(by) === undefined ? await context.call(async () => admin?.groups('unknown')) : undefined
  const of = (name: string) => (row: { readonly operation: string }) => row.operation === name
  return [...kinds].map(([name, kind]) => ({
    name,
    kind,
    retentionMs: retentionOf(name).retentionMs,
    quarantineMs: context.options.quarantineMs?.(name) ?? 600_000,
    leaseMs: leaseMsOf(name),
    onFailure: onFailureOf(name),
    unknown: unknown?.groups.filter(of(name)).reduce((sum, { count }) => sum + count, 0),
    lastHour: sums && lastHourOf(sums.filter(of(name)), leaseMsOf(name)),
  }))
}

const nothing = { count: 0, oldestMs: 0 }

async function overview(context: AdminContext, by: Asker, admin: AdminRecords): Promise<Overview> {
  const { store } = context
  const sums = (kind: WorkKind) => sum(context, by, { admin, kind })
  const [unknown, parked, overdue] = await Promise.all([sums('unknown'), sums('parked'), sums('overdue')])
  const [lag, inboxWaiting] = await Promise.all([store.outbox?.lag(), store.inbox?.waiting()])
  const isLimited = scopesOf(by) !== undefined
  return {
    unknown: { ...nothing, count: unknown.count, oldestMs: unknown.oldestMs },
    parked: { ...nothing, count: parked.count, oldestMs: parked.oldestMs },
    overdue: { ...nothing, count: overdue.count, oldestMs: overdue.oldestMs },
    outbox: lag && !isLimited ? { waiting: lag.waiting, oldestMs: lag.oldestMs, parked: lag.parked } : undefined,
    inbox: inboxWaiting === undefined || isLimited ? undefined : { waiting: inboxWaiting },
    workers: await admin.workers(),
    rates: await admin.rates({ sinceMs: hourMs, metrics: [...counted] }),
    partial: unknown.partial || parked.partial || overdue.partial,
  }
}

async function find(context: AdminContext, by: Asker, what: FindWhat): Promise<Read<readonly AdminRow[]>> {
  const refused = notViewable(by)
  if (refused !== undefined) return refused
  const { store, call } = context
  let ids: readonly string[]
  if ('reference' in what) {
    const { references } = store
    if (references === undefined)
      return { kind: 'not-supported', why: `the ${store.name} store has no references (traits.faculties)` }
    const fault = referenceFault(what.reference)
    if (fault !== undefined) return { kind: 'invalid', why: fault }
    ids = [...new Set((await call(() => references.find(what.reference, { limit: referredMax }))).map(({ id }) => id))]
  } else {
    ids = ['id' in what ? what.id : identify(what).id]
  }
  const quarantineOf = await quarantines(context)
  const rows = await Promise.all(ids.filter(isRowId).map(id => currentView(context, id, quarantineOf)))
  return { kind: 'found', value: rows.filter(row => row !== undefined).filter(row => sees(by, row.scope)) }
}

interface Looked {
  readonly record: KeyRecord
  readonly row: AdminRow
  readonly inspected: InspectedRow
  readonly inputBytes: number | undefined
  readonly definitionVersion: number | undefined
}

async function look(context: AdminContext, by: Asker, id: string): Promise<Looked | undefined> {
  const record = await visibleRow(context, by, id)
  const row = record && (await currentView(context, id, await quarantines(context)))
  if (record === undefined || row === undefined) return undefined
  const { store, call } = context
  const found = await call(() => store.inspect(id))
  const journal = record.recovery === 'resume' ? await call(async () => store.steps?.readJournal(id)) : undefined
  const references = await call(async () => store.references?.of(id))
  const input = journal?.work?.input
  return {
    record,
    row,
    inspected: inspectedRow(id, found, { journal, references }),
    inputBytes: input === undefined ? undefined : Buffer.byteLength(input),
    definitionVersion: journal?.work?.version,
  }
}

async function key(context: AdminContext, by: Asker, id: string): Promise<Read<AdminKey>> {
  const refused = notViewable(by)
  if (refused !== undefined) return refused
  const looked = await look(context, by, id)
  if (looked === undefined) return { kind: 'not-found' }
  const { record, row, inspected, inputBytes, definitionVersion } = looked
  const mayNot = rights.flatMap(right => {
    const why = whyNotNow(context, by, { right, row })
    return why === undefined ? [] : [{ right, why }]
  })
  const value: AdminKey = {
    ...row,
    status: record.outcome?.status,
    outcomeBytes: record.outcome === undefined ? undefined : (record.outcome.body?.byteLength ?? 0),
    inputBytes,
    definitionVersion,
    references: inspected.references,
    openEffect: inspected.openEffect,
    may: rights.filter(right => mayNot.every(each => each.right !== right)),
    mayNot,
  }
  return { kind: 'found', value }
}

const inState: Partial<Record<Right, (row: AdminRow) => boolean>> = {
  look_up: ({ state, parked }) => state === 'unknown' && !parked,
  park: ({ state, parked }) => !parked && state !== 'in_progress' && state !== 'completed' && state !== 'unreadable',
  resume: ({ parked }) => parked,
  'settle.happened': ({ state }) => state === 'unknown',
  'settle.did_not_happen': ({ state }) => state === 'unknown',
  forget: ({ state }) => state === 'completed' || state === 'unreadable',
}

function whyNotNow(
  { store }: AdminContext,
  { who }: Asker,
  { right, row }: { readonly right: Right; readonly row: AdminRow },
): string | undefined {
  if (!rightsOf(who).includes(right)) return `you do not have the right ${right}`
  if (store.admin === undefined && right !== 'view') return noActs(store.name)
  if (inState[right]?.(row) === false) return whyNot(right, row.state, row.parked)
  if (right === 'settle.did_not_happen' && (row.quarantineLeftMs ?? 0) > 0)
    return `the quarantine lasts another ${Math.ceil((row.quarantineLeftMs ?? 0) / 1_000)} s: the request may still reach the provider`
  return undefined
}

const entriesMax = 100

async function timeline(context: AdminContext, by: Asker, id: string): Promise<Read<readonly TimelineEntry[]>> {
  const refused = notViewable(by)
  if (refused !== undefined) return refused
  const looked = await look(context, by, id)
  if (looked === undefined) return { kind: 'not-found' }
  const { record, inspected } = looked
  const { admin } = context.store
  const [stored, notes] = await Promise.all([
    context.call(async () => admin?.entries({ id, limit: entriesMax })),
    context.call(async () => admin?.notes(id)),
  ])
  const acts = stored ?? coreEntries(id, inspected.audit).toReversed()
  const dated: TimelineEntry[] = [
    { kind: 'created', atMs: record.createdAtMs },
    ...inspected.evidence.map(each => ({ ...each, kind: 'evidence' as const })),
    ...inspected.references.map(each => ({ ...each, kind: 'reference' as const })),
  ]
  if (notes?.unknown !== undefined)
    dated.push({ kind: 'unknown', atMs: notes.unknown.sinceMs, cause: notes.unknown.cause })
  dated.push(...acts.toReversed().map(each => ({ ...each, kind: 'act' as const })))
  if (record.completedAtMs !== undefined) dated.push({ kind: 'completed', atMs: record.completedAtMs })
  dated.push({ kind: 'expires', atMs: record.expiresAtMs })
  const steps = inspected.steps.map(({ name, kind, state, epoch }) => ({
    ...{ kind: 'step' as const, atMs: undefined, name, step: kind, state, epoch },
  }))
  // Steps are not dated: they stand after the row’s beginning, in their order.
  const [first, ...rest] = dated.toSorted((left, right) => (left.atMs ?? 0) - (right.atMs ?? 0))
  return { kind: 'found', value: first === undefined ? steps : [first, ...steps, ...rest] }
}

async function reveal(context: AdminContext, by: Actor, given: Parameters<Admin['reveal']>[1]): Promise<Revealed> {
  if (given.what !== 'input' && given.what !== 'outcome')
    return { kind: 'invalid', why: 'what must be input or outcome' }
  const plan: ActPlan = { right: 'reveal', act: () => ({ kind: 'reveal' }), evidence: given.what }
  // Each showing is an act of its own: a request that is repeated shows the body again, and the audit says so.
  const done = await actOn(context, { ...by, requestId: undefined }, { given, plan })
  if (done.kind === 'second-person-needed') return { kind: 'not-found' }
  if (done.kind !== 'done') return done satisfies Refusal
  const looked = await look(context, by, given.id)
  if (looked === undefined) return { kind: 'not-found' }
  const { operation, outcome } = looked.record
  const redact = context.options.redact ?? ((_operation, _what, body) => body)
  const { auditId } = done
  if (given.what === 'outcome') {
    if (outcome === undefined) return { kind: 'not-found' }
    const body = redact(operation, 'outcome', outcome.body ?? new Uint8Array())
    return { kind: 'revealed', what: 'outcome', status: outcome.status, headers: outcome.headers, body, auditId }
  }
  const journal = await context.call(async () => context.store.steps?.readJournal(given.id))
  if (journal?.work === undefined) return { kind: 'not-found' }
  return { kind: 'revealed', what: 'input', body: redact(operation, 'input', Buffer.from(journal.work.input)), auditId }
}
