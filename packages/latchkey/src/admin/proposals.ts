/** Acts that wait for a second person: bound to the version they were made for, for a day, and never approved by who proposed them. */
import type { RowAct, RowVersion, StoredProposal } from '../ports/faculties/admin.ts'
import type { Actor, Admin } from './admin.ts'
import { type Asked, deniedAct, outcomeOf } from './outcome.ts'
import {
  type AdminContext,
  type Attempt,
  isRefusal,
  overLimit,
  permitted,
  quarantines,
  reasonFault,
  refuse,
  requestIdOf,
  sees,
  versionText,
} from './context.ts'
import type { ActOutcome, Proposal, Refusal } from './results.ts'
import { isSamePerson, type Right, rightsOf } from './rights.ts'
import { currentView } from './view.ts'

const proposalMs = 24 * 3_600_000
const shownMax = 100

export interface Proposing extends Asked {
  readonly expected: RowVersion
  readonly act: RowAct
  readonly right: Right
  readonly detail: string
}

/** What could not be done now is not proposed either: the quarantine, and the state, are looked at first. */
export async function proposed(asked: Proposing): Promise<ActOutcome> {
  const { context, by, attempt, row, act, expected, right, detail } = asked
  const early = tooEarly(act, asked)
  if (early !== undefined) return refuse(context, attempt, early)
  const { admin } = context.store
  if (admin === undefined) return { kind: 'not-supported', why: 'the store has no admin' }
  const proposalId = context.clock.randomId()
  const { reason, requestId, evidence } = attempt
  const result = await context.call(() =>
    admin.act({
      id: row.id,
      expected,
      act: { kind: 'propose', proposalId, act: right, detail, expiresInMs: proposalMs },
      by: { by: by.who.name, reason, source: by.source, requestId, evidence },
    }),
  )
  if (result.kind !== 'acted') return outcomeOf(asked, result)
  const made = result.repeated ? await madeBefore(context, row.id, by) : proposalId
  const stored = await context.call(() => admin.proposal(made))
  if (stored === undefined) return { kind: 'not-found' }
  return { kind: 'second-person-needed', proposal: proposalView(stored) }
}

/** Of a repeated request: the proposal that it made. */
async function madeBefore(context: AdminContext, id: string, { who }: Actor): Promise<string> {
  const found = await context.call(async () => context.store.admin?.proposals({ limit: shownMax }))
  return found?.find(each => each.id === id && each.by === who.name)?.proposalId ?? context.clock.randomId()
}

function tooEarly(act: RowAct, { row }: Pick<Asked, 'row'>): Refusal | undefined {
  if (act.kind === 'forget')
    return row.state === 'completed' || row.state === 'unreadable'
      ? undefined
      : { kind: 'wrong-state', state: row.state, why: `only a completed row is forgotten; this one is ${row.state}` }
  if (row.state !== 'unknown')
    return {
      kind: 'wrong-state',
      state: row.state,
      why: `only an unknown row is settled by a person; this one is ${row.state}`,
    }
  const leftMs = act.kind === 'settle' && act.quarantineMs > 0 ? (row.quarantineLeftMs ?? 0) : 0
  return leftMs > 0 ? { kind: 'quarantine-not-over', leftMs } : undefined
}

export function proposalView(stored: StoredProposal): Proposal {
  const { detail: _detail, expected, state, ...rest } = stored
  const isExpired = state === 'open' && stored.expiresInMs <= 0
  return { ...rest, version: versionText(expected), state: isExpired ? 'expired' : state }
}

export function proposalActs(context: AdminContext): Pick<Admin, 'proposals' | 'approve' | 'reject'> {
  return {
    async proposals(by) {
      const admin = permitted(context, by, 'view')
      if (isRefusal(admin)) return admin
      const found = await context.call(() => admin.proposals({ limit: shownMax }))
      return { kind: 'found', value: found.filter(({ scope }) => sees(by, scope)).map(proposalView) }
    },
    approve: (by, given) => decide(context, by, { ...given, as: 'approve' }),
    reject: (by, given) => decide(context, by, { ...given, as: 'reject' }),
  }
}

interface Decision {
  readonly proposalId: string
  readonly reason: string
  readonly as: 'approve' | 'reject'
}

async function decide(context: AdminContext, by: Actor, { proposalId, reason, as }: Decision): Promise<ActOutcome> {
  const requestId = requestIdOf(context, by)
  const attempt: Attempt = { by, act: as, reason, requestId }
  const admin = permitted(context, by, 'approve')
  if (isRefusal(admin)) return admin.kind === 'not-permitted' ? refuse(context, attempt, admin) : admin
  const fault = reasonFault(reason)
  if (fault !== undefined) return { kind: 'invalid', why: fault }
  const over = await overLimit(context, by)
  if (over !== undefined) return refuse(context, attempt, over)
  const stored = isId(proposalId) ? await context.call(() => admin.proposal(proposalId)) : undefined
  if (stored === undefined || !sees(by, stored.scope)) return refuse(context, attempt, { kind: 'not-found' })
  const about = { ...attempt, id: stored.id, scope: stored.scope }
  const refusal = decisionFault(by, stored)
  if (refusal !== undefined) return refuse(context, about, refusal)
  if (as === 'approve') return approve(context, about, stored)
  const entry = { ...about, act: 'reject', detail: stored.act, by: by.who.name, source: by.source }
  const closed = await context.call(() => admin.closeProposal(proposalId, 'rejected', entry))
  if (!closed) return refuse(context, about, { kind: 'proposal-closed', state: 'void' })
  const row = await currentView(context, stored.id, await quarantines(context))
  return { kind: 'done', row, auditId: '', repeated: false }
}

const proposalIdShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function isId(text: string): boolean {
  return proposalIdShape.test(text)
}

function decisionFault({ who }: Actor, stored: StoredProposal): Refusal | undefined {
  const { state } = proposalView(stored)
  if (state !== 'open') return { kind: 'proposal-closed', state }
  // Two persons: by name, whatever rights the one has.
  if (isSamePerson(stored.by, who.name)) return { kind: 'own-proposal' }
  // Only acts that have a right are proposed.
  const right = stored.act as Right
  return rightsOf(who).includes(right) ? undefined : { kind: 'not-permitted', right }
}

async function approve(context: AdminContext, attempt: Attempt, stored: StoredProposal): Promise<ActOutcome> {
  const { admin } = context.store
  const quarantineOf = await quarantines(context)
  const row = await currentView(context, stored.id, quarantineOf)
  if (admin === undefined || row === undefined) return voided(context, attempt, stored)
  const { by, reason, requestId } = attempt
  const told = `${reason} (proposed by ${stored.by}: ${stored.reason})`
  const result = await context.call(() =>
    admin.act({
      id: stored.id,
      act: actOf(context, stored, quarantineOf),
      expected: stored.expected,
      proposalId: stored.proposalId,
      by: { by: by.who.name, reason: told, source: by.source, requestId, evidence: stored.evidence },
    }),
  )
  if (result.kind === 'row-moved') return voided(context, attempt, stored)
  return outcomeOf({ context, by, attempt, row, quarantineOf }, result)
}

function actOf(
  context: AdminContext,
  { act, detail, operation }: StoredProposal,
  quarantineOf: (operation: string) => number,
): RowAct {
  if (act === 'forget') return { kind: 'forget' }
  // Written by `deniedPlan`.
  const { denied } = JSON.parse(detail === '' ? '{}' : detail) as { readonly denied?: boolean }
  return deniedAct(context, operation, denied === true ? 0 : quarantineOf(operation))
}

/** The row is not what it was when the act was proposed. */
async function voided(context: AdminContext, attempt: Attempt, stored: StoredProposal): Promise<ActOutcome> {
  const { admin } = context.store
  const entry = { ...attempt, act: 'void', detail: stored.act, by: attempt.by.who.name, source: attempt.by.source }
  await context.call(async () => admin?.closeProposal(stored.proposalId, 'void', entry))
  return { kind: 'proposal-closed', state: 'void' }
}
