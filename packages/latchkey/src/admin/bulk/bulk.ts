/** One act on many rows: planned first, with the rows fixed, then run row by row, each with a result of its own. */
import type { AdminRecords, NewBulkRow, StoredBulk, StoredBulkRow } from '../../ports/faculties/admin.ts'
import type { Actor, Admin, Asker, BulkGiven, OnRow } from '../admin.ts'
import { type ActPlan, actOn, lookUpEveryMs, settleRow } from '../acts.ts'
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
  versionText,
  visibleRow,
} from '../context.ts'
import { bulkRowsMax, importedRows, type Imported } from './import.ts'
import { redriveMessage } from '../messages.ts'
import { pageSize, read, reads } from '../reads.ts'
import type { ActOutcome, BulkAct, BulkOutcome, BulkPlan, BulkRow } from '../results.ts'
import type { Right } from '../rights.ts'

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
  if ('kind' in matched) return matched
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

async function match(
  context: AdminContext,
  by: Actor,
  given: BulkGiven,
): Promise<Matched | Extract<ActOutcome, { kind: 'invalid' }>> {
  const { act, ids, filter, file } = given
  if ((act === 'import_evidence') !== (file !== undefined))
    return { kind: 'invalid', why: 'a file is for import_evidence, and import_evidence needs one' }
  if (file !== undefined) return importedRows(context, by, file)
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
): Promise<Matched> {
  const { work } = reads(context)
  const rows: NewBulkRow[] = []
  let after: string | undefined
  do {
    const page = await work(by, { ...filter, limit: 100, ...(after === undefined ? {} : { after }) })
    if (page.kind !== 'found') return { rows, excluded: {} }
    for (const { id, version } of page.value.items)
      rows.push({ id, expected: parsedVersion(version), detail: undefined })
    after = page.value.next
  } while (after !== undefined && rows.length < bulkRowsMax)
  const excluded = after === undefined ? {} : { 'over the limit': 1 }
  return { rows: rows.slice(0, bulkRowsMax), excluded }
}

type Starting = Parameters<Admin['startBulk']>[1]

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
  if (!(await context.call(() => admin.moveBulk(bulkId, ['planned', 'running'], 'running'))))
    return { kind: 'invalid', why: `the plan is ${planned.state}` }
  const running = runPlan(context, by, { given, planned, admin })
  if (inBackground === undefined) await running
  else inBackground(running)
  return ended(context, bulkId, 'started')
}

interface Running {
  readonly given: Starting
  readonly planned: BulkPlan
  readonly admin: AdminRecords
}

/** To its end, or until it is cancelled or the caller gives up. */
async function runPlan(context: AdminContext, by: Actor, { given, planned, admin }: Running): Promise<void> {
  const { bulkId, signal, onRow } = given
  let rows: readonly StoredBulkRow[]
  let after: number | undefined
  do {
    const page = { limit: 100, ...(after === undefined ? {} : { after }) }
    rows = await context.call(() => admin.bulkRows(bulkId, page))
    for (const row of rows) {
      after = row.at
      const stored = await context.call(() => admin.bulk(bulkId))
      if (signal?.aborted === true || stored?.state !== 'running') return
      if (row.result !== undefined) continue
      const done = await runRow(context, by, { bulkId, planned, row })
      onRow?.(done)
    }
  } while (rows.length > 0)
  await context.call(() => admin.moveBulk(bulkId, ['running'], 'done'))
}

interface RowOfPlan {
  readonly bulkId: string
  readonly planned: BulkPlan
  readonly row: StoredBulkRow
}

async function runRow(context: AdminContext, by: Actor, { bulkId, planned, row }: RowOfPlan): Promise<BulkRow> {
  // The same request id for the same row, whichever person starts or continues the plan: it is done once.
  const part: Actor = { ...by, requestId: `bulk:${bulkId}:${row.at}` }
  const outcome = await outcomeOfRow(context, part, { planned, row })
  await context.call(async () => context.store.admin?.setBulkResult(bulkId, row.at, outcome.kind))
  return { at: row.at, id: row.id, result: outcome.kind }
}

async function outcomeOfRow(
  context: AdminContext,
  by: Actor,
  { planned, row }: Omit<RowOfPlan, 'bulkId'>,
): Promise<ActOutcome> {
  const { act, reason } = planned
  if (act === 'redrive') return redriveMessage(context, by, { position: row.id, reason, isPart: true })
  const given: OnRow = { id: row.id, version: row.expected === undefined ? '' : versionText(row.expected), reason }
  const part = (planOfRow: ActPlan) => actOn(context, by, { given, plan: planOfRow, isPart: true })
  if (act === 'take') return part({ right: 'take', act: () => ({ kind: 'take' }) })
  if (act === 'resume') return part({ right: 'resume', act: () => ({ kind: 'unpark' }) })
  if (act === 'look_up') return part({ right: 'look_up', act: () => ({ kind: 'look-up', notWithinMs: lookUpEveryMs }) })
  // Written by `importedRows`.
  const { answer, evidence, response } = JSON.parse(row.detail ?? '{}') as Imported
  return settleRow(context, by, { ...given, answer, evidence, response }, true)
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
  if (!(await context.call(() => admin.moveBulk(bulkId, ['planned', 'running'], 'cancelled'))))
    return { kind: 'invalid', why: `the plan is ${found.value.state}` }
  await context.call(() => admin.addEntry({ ...attempt, by: by.who.name, source: by.source, detail: bulkId }))
  return ended(context, bulkId, 'cancelled')
}
