/** What is done to a row: permitted, counted, seen, bound to its version, done once, and audited whatever becomes of it. */
import { isLatchkeyError } from '../ports/errors.ts'
import type { RowAct } from '../ports/faculties/admin.ts'
import type { FoundVerdict } from '../ports/reconciliation.ts'
import { storableVerdict, storedVerdict } from '../engine/operator.ts'
import type { Actor, Admin, EvidenceGiven, OnRow, SettleGiven } from './admin.ts'
import {
  type AdminContext,
  type Attempt,
  isRefusal,
  overLimit,
  parsedVersion,
  permitted,
  quarantines,
  reasonFault,
  refuse,
  requestIdOf,
  visibleRow,
} from './context.ts'
import type { ActOutcome, AdminRow, Refusal } from './results.ts'
import { type Right, rightsOf } from './rights.ts'
import { deniedAct, outcomeOf } from './outcome.ts'
import { proposed } from './proposals.ts'
import { currentView } from './view.ts'

type RowActs = Pick<Admin, 'lookUp' | 'settle' | 'park' | 'resume' | 'take' | 'note' | 'forget'>

/** A provider is asked about one row so often at most, by whomever. */
export const lookUpEveryMs = 30_000

export interface ActPlan {
  readonly right: Right
  readonly act: (row: AdminRow) => RowAct | Refusal
  readonly evidence?: string | undefined
  /** Acts that may need a second person: what the proposal holds. */
  readonly proposal?: { readonly detail: object } | undefined
}

export function rowActs(context: AdminContext): RowActs {
  const simple = (right: Right, act: RowAct) => (by: Actor, given: OnRow) =>
    actOn(context, by, { given, plan: { right, act: () => act } })
  return {
    take: simple('take', { kind: 'take' }),
    note: simple('note', { kind: 'note' }),
    park: simple('park', { kind: 'park' }),
    resume: simple('resume', { kind: 'unpark' }),
    async lookUp(by, given) {
      const why = `the ${context.store.name} store has no reconciliation (traits.faculties)`
      if (context.store.reconciliation === undefined) return { kind: 'not-supported', why }
      return actOn(context, by, {
        given,
        plan: { right: 'look_up', act: () => ({ kind: 'look-up', notWithinMs: lookUpEveryMs }) },
      })
    },
    settle: (by, given) => settleRow(context, by, given),
    async forget(by, given) {
      const isConfirmed = given.confirm === given.id.slice(0, 4)
      if (!isConfirmed) return { kind: 'invalid', why: 'confirm must be the first four characters of the row’s id' }
      return actOn(context, by, { given, plan: forgetPlan })
    },
  }
}

const forgetPlan: ActPlan = { right: 'forget', act: () => ({ kind: 'forget' }), proposal: { detail: {} } }

/** `isPart`: of one act on many rows. */
export async function settleRow(
  context: AdminContext,
  by: Actor,
  given: SettleGiven,
  isPart = false,
): Promise<ActOutcome> {
  const { answer, evidence } = given
  if (answer === 'still_unknown')
    return actOn(context, by, { isPart, given, plan: { right: 'note', act: () => ({ kind: 'note' }) } })
  const fault = evidenceFault(evidence)
  if (evidence === undefined || fault !== undefined) return { kind: 'invalid', why: fault ?? 'evidence is required' }
  if (answer === 'did_not_happen')
    return actOn(context, by, { isPart, given, plan: await deniedPlan(context, evidence) })
  if (answer !== 'happened' && answer !== 'declined')
    return { kind: 'invalid', why: 'answer must be happened, declined, did_not_happen or still_unknown' }
  const act = (row: AdminRow): RowAct | Refusal => {
    if (given.effect !== undefined && given.effect !== row.effect)
      return { kind: 'wrong-verdict', needs: row.effect === undefined ? 'outcome' : 'value', effect: row.effect }
    return happenedAct(context, row.operation, { kind: answer, given, evidence })
  }
  return actOn(context, by, {
    isPart,
    given,
    plan: { right: 'settle.happened', act, evidence: evidenceText(evidence) },
  })
}

/** "It did not happen": after the quarantine, or by the provider's explicit denial. */
async function deniedPlan(context: AdminContext, evidence: EvidenceGiven): Promise<ActPlan> {
  const quarantineOf = await quarantines(context)
  const denied = evidence.kind === 'denial'
  return {
    right: 'settle.did_not_happen',
    evidence: evidenceText(evidence),
    proposal: { detail: { denied } },
    act: ({ operation }) => deniedAct(context, operation, denied ? 0 : quarantineOf(operation)),
  }
}

interface Happened {
  readonly kind: 'happened' | 'declined'
  readonly given: Pick<SettleGiven, 'response'>
  readonly evidence: EvidenceGiven
}

function happenedAct(
  { latchkey }: AdminContext,
  operation: string,
  { kind, given, evidence }: Happened,
): RowAct | Refusal {
  const { retentionMs, outcomeVersion, sensitive } = latchkey.retentionOf(operation)
  const said = given.response === undefined ? { kind, value: evidence.value } : { kind, ...given.response }
  try {
    const verdict: FoundVerdict = storableVerdict(storedVerdict(said, outcomeVersion), sensitive)
    return { kind: 'settle', verdict, retentionMs, quarantineMs: 0 }
  } catch (error) {
    if (!isLatchkeyError(error, 'misconfigured')) throw error
    return { kind: 'invalid', why: error.message }
  }
}

const evidenceKinds: readonly string[] = ['reference', 'ticket', 'export', 'denial', 'other']
const evidenceLengthMax = 250

function evidenceFault(evidence: EvidenceGiven | undefined): string | undefined {
  // Of a caller without types as well.
  if (typeof evidence !== 'object' || evidence === null)
    return 'evidence is required: what the answer relies on, as { kind, reference }'
  if (!evidenceKinds.includes(evidence.kind)) return `the kind of evidence must be one of ${evidenceKinds.join(', ')}`
  const { reference } = evidence
  if (typeof reference === 'string' && reference.trim() !== '' && reference.length <= evidenceLengthMax)
    return undefined
  return `the reference of evidence must be 1 to ${evidenceLengthMax} characters`
}

function evidenceText({ kind, reference }: EvidenceGiven): string {
  return `${kind}:${reference}`
}

export interface RowRequest {
  readonly given: OnRow
  readonly plan: ActPlan
  /** Of one act on many rows: it was permitted, and counts once. */
  readonly isPart?: boolean
}

export async function actOn(
  context: AdminContext,
  by: Actor,
  { given, plan, isPart = false }: RowRequest,
): Promise<ActOutcome> {
  const { right, evidence } = plan
  const requestId = requestIdOf(context, by)
  const attempt: Attempt = { by, act: right, id: given.id, reason: given.reason, requestId, evidence }
  const mayPropose = plan.proposal !== undefined && rightsOf(by.who).includes('propose')
  const admin = permitted(context, by, mayPropose && !rightsOf(by.who).includes(right) ? 'propose' : right)
  if (isRefusal(admin)) return admin.kind === 'not-permitted' ? refuse(context, attempt, { ...admin, right }) : admin
  const expected = parsedVersion(given.version)
  const fault =
    reasonFault(given.reason) ??
    (expected === undefined ? 'the version of the row that was read is required' : undefined)
  if (expected === undefined || fault !== undefined) return { kind: 'invalid', why: fault ?? '' }
  const over = isPart ? undefined : await overLimit(context, by)
  if (over !== undefined) return refuse(context, attempt, over)
  const record = await visibleRow(context, by, given.id)
  const quarantineOf = await quarantines(context)
  const row = record && (await currentView(context, given.id, quarantineOf))
  // A row that was forgotten is gone, and its act may be repeated all the same.
  if (row === undefined) return gone(context, attempt, { expected, right })
  const act = plan.act(row)
  if ('why' in act || act.kind === 'wrong-verdict' || !isRowAct(act))
    // About a row that is no longer the one that was read, the refusal would mislead.
    return refuse(
      context,
      { ...attempt, scope: row.scope },
      row.version === given.version ? (act as Refusal) : { kind: 'row-moved', row },
    )
  const asked = { ...{ context, by, attempt: { ...attempt, scope: row.scope }, row, expected, quarantineOf } }
  if (plan.proposal !== undefined && needsSecond(context, by, { right, row })) {
    return proposed({ ...asked, act, right, detail: JSON.stringify(plan.proposal.detail) })
  }
  const { name } = by.who
  const result = await context.call(() =>
    admin.act({
      id: row.id,
      act,
      expected,
      by: { by: name, reason: given.reason, source: by.source, requestId, evidence },
    }),
  )
  return outcomeOf(asked, result)
}

function isRowAct(act: RowAct | Refusal): act is RowAct {
  const kinds: readonly string[] = [
    'settle',
    'forget',
    'park',
    'unpark',
    'take',
    'note',
    'reveal',
    'look-up',
    'propose',
  ]
  return kinds.includes(act.kind)
}

/** One who lacks the right proposes; one who has it needs a second person where the options say so. */
function needsSecond(
  { options: { approvals = {} } }: AdminContext,
  { who }: Actor,
  { right, row }: { readonly right: Right; readonly row: AdminRow },
): boolean {
  if (!rightsOf(who).includes(right)) return true
  const approval = (right === 'forget' ? approvals.forget : approvals['settle.did_not_happen']) ?? 'always'
  return typeof approval === 'function' ? approval(row) : approval === 'always'
}

async function gone(
  context: AdminContext,
  attempt: Attempt,
  { expected, right }: { readonly expected: ReturnType<typeof parsedVersion>; readonly right: Right },
): Promise<ActOutcome> {
  const { admin } = context.store
  const { id = '', by, requestId, reason } = attempt
  if (
    right === 'forget' &&
    admin !== undefined &&
    expected !== undefined &&
    (await context.call(() => context.store.read(id))) === undefined
  ) {
    const operator = { by: by.who.name, reason, source: by.source, requestId }
    const again = await context.call(() => admin.act({ id, act: { kind: 'forget' }, expected, by: operator }))
    if (again.kind === 'acted') return { kind: 'done', row: undefined, auditId: again.auditId, repeated: true }
  }
  return refuse(context, attempt, { kind: 'not-found' })
}
