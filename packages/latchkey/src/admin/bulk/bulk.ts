/** One act on many rows: planned first, with the rows fixed, then run row by row, each with a result of its own. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { NewBulkRow, StoredBulk } from '../../ports/faculties/admin.ts'
import type { Actor, Admin, Asker, BulkGiven } from '../admin.ts'
import {
  type AdminContext,
  type Attempt,
  isRefusal,
  overLimit,
  parsedVersion,
  permitted,
  reasonFault,
  refuse,
  requestIdOf,
  visibleRow,
} from '../context.ts'
import { bulkRowsMax, fileFault, importedRows } from './import.ts'
import { runPlan, runToEnd, type Starting } from './run.ts'
import { read, reads } from '../reads.ts'
import type { BulkAct, BulkOutcome, BulkPlan, ReadRefusal } from '../results.ts'
import type { Right } from '../rights.ts'
import { pageSize, workKinds } from '../work.ts'

const validMs = 3_600_000
const sampleSize = 5
const acts: readonly BulkAct[] = ['take', 'look_up', 'resume', 'redrive', 'import_evidence']

/** What the plan says beside its rows; JSON of `detail`. */
interface PlanDetail {
  readonly excluded: Readonly<Record<string, number>>
}

interface Matched extends PlanDetail {
  readonly rows: readonly NewBulkRow[]
}

type BulkActs = Pick<Admin, 'planBulk' | 'startBulk' | 'cancelBulk' | 'bulk' | 'bulkRows'>

export function bulkActs(context: AdminContext): BulkActs {
  return {
    planBulk: (by, given) => plan(context, by, given),
    startBulk: (by, given) => start(context, by, given),
    cancelBulk: (by, { bulkId }) => cancel(context, by, bulkId),
    bulk: (by, bulkId) => readPlan(context, by, bulkId),
    async bulkRows(by, bulkId, { limit, after } = {}) {
      const found = await readPlan(context, by, bulkId)
      if (found.kind !== 'found') return found
      const page = { limit: pageSize(limit), ...(after === undefined ? {} : { after }) }
      return read(context, by, async admin =>
        (await admin.bulkRows(bulkId, page)).map(({ at, id, result }) => ({ at, id, result })),
      )
    },
  }
}

async function readPlan(context: AdminContext, by: Asker, bulkId: string) {
  const found = await read(context, by, async admin =>
    isBulkId(bulkId) ? planOf(context, bulkId, await admin.bulk(bulkId)) : undefined,
  )
  if (found.kind !== 'found') return found
  // A plan may name rows of every scope: it is shown to who sees all of them, and to its author.
  const { value } = found
  const isHidden = by.who.limitScopes !== undefined && value?.by !== by.who.name
  return value === undefined || isHidden ? ({ kind: 'not-found' } as const) : { kind: 'found' as const, value }
}

function isBulkId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}

async function planOf(
  context: AdminContext,
  bulkId: string,
  stored: StoredBulk | undefined,
): Promise<BulkPlan | undefined> {
  if (stored === undefined) return undefined
  const sample = (await context.store.admin?.bulkRows(bulkId, { limit: sampleSize })) ?? []
  // Written by `plan`.
  const { excluded } = JSON.parse(stored.detail) as PlanDetail
  const { act, state, by, reason, validInMs, total, finished } = stored
  // Only acts of the list are planned.
  return {
    ...{ bulkId, act: act as BulkAct, state, by, reason, excluded, validInMs, finished },
    matched: total,
    sample: sample.map(({ id }) => id),
  }
}

async function plan(context: AdminContext, by: Actor, given: BulkGiven): Promise<BulkOutcome> {
  const requestId = requestIdOf(context, by)
  const attempt: Attempt = { by, act: `bulk.${given.act}`, reason: given.reason, requestId }
  for (const right of ['bulk', rightOf(given.act)] as const) {
    const allowed = permitted(context, by, right)
    if (isRefusal(allowed)) return allowed.kind === 'not-permitted' ? refuse(context, attempt, allowed) : allowed
  }
  const { admin } = context.store
  const ways = [given.ids, given.filter, given.file].filter(way => way !== undefined)
  const fault =
    reasonFault(given.reason) ?? (acts.includes(given.act) ? undefined : `act must be one of ${acts.join(', ')}`)
  const wrong = fault ?? (ways.length === 1 ? undefined : 'give exactly one of ids, filter and file')
  if (admin === undefined || wrong !== undefined) return { kind: 'invalid', why: wrong ?? '' }
  const over = await overLimit(context, by)
  if (over !== undefined) return refuse(context, attempt, over)
  const matched = await match(context, by, given)
  if ('kind' in matched) return matched.kind === 'not-permitted' ? refuse(context, attempt, matched) : matched
  const bulkId = context.clock.randomId()
  const { name } = by.who
  const stored = { bulkId, act: given.act, by: name, reason: given.reason, validInMs: validMs, rows: matched.rows }
  const entry = {
    ...attempt,
    act: 'bulk.plan',
    by: name,
    source: by.source,
    detail: `${given.act} ${matched.rows.length} rows ${bulkId}`,
  }
  await context.call(() => admin.planBulk({ ...stored, detail: JSON.stringify({ excluded: matched.excluded }) }, entry))
  const made = await planOf(context, bulkId, await context.call(() => admin.bulk(bulkId)))
  return made === undefined ? { kind: 'not-found' } : { kind: 'planned', plan: made }
}

function rightOf(act: BulkAct): Right {
  return act === 'import_evidence' ? 'settle.happened' : act
}

async function match(context: AdminContext, by: Actor, given: BulkGiven): Promise<Matched | ReadRefusal> {
  const { act, ids, filter, file } = given
  if ((act === 'import_evidence') !== (file !== undefined))
    return { kind: 'invalid', why: 'a file is for import_evidence, and import_evidence needs one' }
  if (file !== undefined) {
    const fault = fileFault(file)
    return fault === undefined ? importedRows(context, by, file) : { kind: 'invalid', why: fault }
  }
  if (filter !== undefined && !workKinds.includes(filter.kind))
    return { kind: 'invalid', why: `the kind of a filter must be one of ${workKinds.join(', ')}` }
  if (act === 'redrive') {
    return ids === undefined
      ? { kind: 'invalid', why: 'redrive needs ids: positions of parked messages' }
      : {
          rows: ids.slice(0, bulkRowsMax).map(id => ({ id, expected: undefined, detail: undefined })),
          excluded: overMax(ids.length),
        }
  }
  return ids === undefined ? matchFilter(context, by, filter ?? { kind: 'unknown' }) : matchIds(context, by, ids)
}

function overMax(found: number): Readonly<Record<string, number>> {
  return found > bulkRowsMax ? { 'over the limit': found - bulkRowsMax } : {}
}

async function matchIds(context: AdminContext, by: Actor, ids: readonly string[]): Promise<Matched> {
  const rows: NewBulkRow[] = []
  let missing = 0
  for (const id of new Set(ids.slice(0, bulkRowsMax))) {
    const notes =
      (await visibleRow(context, by, id)) && (await context.call(async () => context.store.admin?.notes(id)))
    if (notes === undefined) missing += 1
    else rows.push({ id, expected: notes.version, detail: undefined })
  }
  return { rows, excluded: { ...(missing > 0 ? { 'not found': missing } : {}), ...overMax(ids.length) } }
}

async function matchFilter(
  context: AdminContext,
  by: Actor,
  filter: NonNullable<BulkGiven['filter']>,
): Promise<Matched | ReadRefusal> {
  const { work } = reads(context)
  const rows: NewBulkRow[] = []
  let after: string | undefined
  do {
    const page = await work(by, { ...filter, limit: 100, ...(after === undefined ? {} : { after }) })
    if (page.kind !== 'found') return page
    // Of a list that was cut off nobody knows what it lacks: a plan of it would look whole.
    if (page.value.partial && page.value.next === undefined) throw cutOff(context)
    for (const { id, version } of page.value.items)
      rows.push({ id, expected: parsedVersion(version), detail: undefined })
    after = page.value.next
  } while (after !== undefined && rows.length < bulkRowsMax)
  const excluded = after === undefined ? {} : { 'or more, over the limit': 1 }
  return { rows: rows.slice(0, bulkRowsMax), excluded }
}

function cutOff({ store }: AdminContext): LatchkeyError {
  return new LatchkeyError(
    'store-unavailable',
    `the ${store.name} store took too long to list the rows, and nothing was planned: try again, or filter by operation`,
  )
}

async function start(context: AdminContext, by: Actor, given: Starting): Promise<BulkOutcome> {
  const { bulkId, inBackground } = given
  const found = await readPlan(context, by, bulkId)
  if (found.kind !== 'found') return found
  const { value: planned } = found
  const attempt: Attempt = {
    by,
    act: `bulk.${planned.act}`,
    reason: planned.reason,
    requestId: requestIdOf(context, by),
  }
  for (const right of ['bulk', rightOf(planned.act)] as const) {
    const allowed = permitted(context, by, right)
    if (isRefusal(allowed)) return allowed.kind === 'not-permitted' ? refuse(context, attempt, allowed) : allowed
  }
  const { admin } = context.store
  if (admin === undefined) return { kind: 'not-found' }
  if (planned.validInMs <= 0 && planned.state === 'planned')
    return { kind: 'invalid', why: 'the plan is older than an hour: plan it again' }
  if (!(await context.call(() => admin.moveBulk(bulkId, { from: ['planned', 'running'], to: 'running' }))))
    return { kind: 'invalid', why: `the plan is ${planned.state}` }
  const running = { given, planned, admin }
  if (inBackground === undefined) await runPlan(context, by, running)
  else inBackground(runToEnd(context, by, running))
  return ended(context, bulkId, 'started')
}

async function ended(context: AdminContext, bulkId: string, kind: 'started' | 'cancelled'): Promise<BulkOutcome> {
  const now = await planOf(context, bulkId, await context.call(async () => context.store.admin?.bulk(bulkId)))
  return now === undefined ? { kind: 'not-found' } : { kind, plan: now }
}

async function cancel(context: AdminContext, by: Actor, bulkId: string): Promise<BulkOutcome> {
  const found = await readPlan(context, by, bulkId)
  if (found.kind !== 'found') return found
  const attempt: Attempt = { by, act: 'bulk.cancel', reason: found.value.reason, requestId: requestIdOf(context, by) }
  const admin = permitted(context, by, 'bulk')
  if (isRefusal(admin)) return admin.kind === 'not-permitted' ? refuse(context, attempt, admin) : admin
  const move = { from: ['planned', 'running'], to: 'cancelled' } as const
  const entry = { ...attempt, by: by.who.name, source: by.source, detail: bulkId }
  if (!(await context.call(() => admin.moveBulk(bulkId, move, entry))))
    return { kind: 'invalid', why: `the plan is ${found.value.state}` }
  return ended(context, bulkId, 'cancelled')
}
