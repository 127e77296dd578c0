/** Messages that were not delivered, and messages that could not be run: what operators do with them, in the same audit. */
import type { AdminRecords } from '../ports/faculties/admin.ts'
import { isRowId } from '../engine/request.ts'
import type { Actor, Admin, Asker } from './admin.ts'
import {
  type AdminContext,
  type Attempt,
  isRefusal,
  overLimit,
  permitted,
  reasonFault,
  refuse,
  requestIdOf,
  scopesOf,
} from './context.ts'
import { pageSize } from './work.ts'
import type { ActOutcome, ReadRefusal, Refusal } from './results.ts'
import type { Right } from './rights.ts'

type MessageCalls = Pick<
  Admin,
  | 'outbox'
  | 'outboxLanes'
  | 'outboxParked'
  | 'redriveOutbox'
  | 'skipOutbox'
  | 'inboxParked'
  | 'redriveInbox'
  | 'discardInbox'
>

export function messageCalls(context: AdminContext): MessageCalls {
  return { ...outboxCalls(context), ...inboxCalls(context) }
}

/** Messages have no scope that is read back: who sees some scopes only sees none of them. Undefined: this person may see them. */
function hidden(context: AdminContext, by: Asker): ReadRefusal | undefined {
  const admin = permitted(context, by, 'view')
  if (isRefusal(admin)) return admin
  return scopesOf(by) === undefined ? undefined : { kind: 'not-found' }
}

function lacking({ store }: AdminContext, faculty: string): ReadRefusal {
  return { kind: 'not-supported', why: `the ${store.name} store has no ${faculty} (traits.faculties)` }
}

function pageFrom({ limit, after }: { readonly limit?: number; readonly after?: string }, more = 0) {
  return { limit: pageSize(limit) + more, ...(after === undefined ? {} : { after }) }
}

function outboxCalls(
  context: AdminContext,
): Pick<Admin, 'outbox' | 'outboxLanes' | 'outboxParked' | 'redriveOutbox' | 'skipOutbox'> {
  const { store, call } = context
  return {
    async outbox(by) {
      const refused = hidden(context, by)
      if (refused !== undefined) return refused
      const { outbox } = store
      if (outbox === undefined) return lacking(context, 'outbox')
      return { kind: 'found', value: { ...(await call(() => outbox.lag())), lanes: outbox.lanes } }
    },
    async outboxLanes(by) {
      const refused = hidden(context, by)
      if (refused !== undefined) return refused
      const { outbox, admin } = store
      if (outbox === undefined || admin === undefined) return lacking(context, 'outbox')
      return { kind: 'found', value: await call(() => admin.lanes()) }
    },
    async outboxParked(by, page = {}) {
      const refused = hidden(context, by)
      if (refused !== undefined) return refused
      const { outbox } = store
      if (outbox === undefined) return lacking(context, 'outbox')
      const size = pageSize(page.limit)
      const found = await call(() => outbox.parked(pageFrom(page, 1)))
      const items = found.slice(0, size).map(message => {
        const { position, topic, aggregate, dedupId, lane, attempts, cause, parkedAtMs, createdAtMs, history } = message
        return { position, topic, aggregate, dedupId, lane, attempts, cause, parkedAtMs, createdAtMs, history }
      })
      const next = found.length > size ? items.at(-1)?.position : undefined
      return { kind: 'found', value: { items, next, partial: false } }
    },
    redriveOutbox: (by, given) => redriveOutbox(context, by, given),
    skipOutbox: (by, given) => skipMessage(context, by, given),
  }
}

interface RedriveGiven extends Pick<OnMessage, 'reason' | 'isPart'> {
  readonly position: string
}

export function redriveOutbox(
  context: AdminContext,
  by: Actor,
  { position, ...given }: RedriveGiven,
): Promise<ActOutcome> {
  const { outbox } = context.store
  return onMessage(context, by, { ...given, what: 'outbox', target: position, act: 'redrive' }, async named =>
    outbox === undefined ? 'not-supported' : (await outbox.redrive(position, named)).kind,
  )
}

function inboxCalls(context: AdminContext): Pick<Admin, 'inboxParked' | 'redriveInbox' | 'discardInbox'> {
  const { store, call } = context
  return {
    async inboxParked(by, { consumer, ...page } = {}) {
      const refused = hidden(context, by)
      if (refused !== undefined) return refused
      const { inbox } = store
      if (inbox === undefined) return lacking(context, 'inbox')
      const of = consumer === undefined ? {} : { consumer }
      const { messages, next } = await call(() => inbox.list({ ...of, ...pageFrom(page) }))
      const items = messages.map(message => {
        const { id, operation, source, cause, attempts, times, rowId, firstParkedAtMs, parkedAtMs } = message
        const shown = { id, operation, source, cause, attempts, times, rowId, firstParkedAtMs, parkedAtMs }
        return { ...shown, consumer: message.consumer, redriving: message.redrive !== undefined }
      })
      return { kind: 'found', value: { items, next, partial: false } }
    },
    redriveInbox: (by, { id, reason, as }) =>
      onMessage(context, by, { what: 'inbox', target: id, reason, act: 'redrive' }, async named => {
        if (store.inbox === undefined) return 'not-supported'
        return isRowId(id) ? (await store.inbox.redrive(id, named, as)).kind : 'not-found'
      }),
    discardInbox: (by, { id, reason }) =>
      onMessage(context, by, { what: 'inbox', target: id, reason, act: 'discard' }, async named => {
        if (store.inbox === undefined) return 'not-supported'
        return isRowId(id) ? (await store.inbox.discard(id, named)).kind : 'not-found'
      }),
  }
}

/** The message leaves its place and the entry is written in one commit: what a consumer misses is known from its first moment. */
async function skipMessage(
  context: AdminContext,
  by: Actor,
  { position, reason }: Parameters<Admin['skipOutbox']>[1],
): Promise<ActOutcome> {
  const attempt: Attempt = { by, act: 'outbox.skip', reason, requestId: requestIdOf(context, by) }
  const admin = await actingOn(context, attempt, { right: 'skip' })
  if ('kind' in admin) return admin
  if (context.store.outbox === undefined) return lacking(context, 'outbox')
  const { requestId } = attempt
  const result = await context.call(() =>
    admin.skip({ position, by: { by: by.who.name, reason, source: by.source, requestId } }),
  )
  if (result.kind === 'not-found') return refuse(context, attempt, result)
  return { kind: 'done', row: undefined, auditId: result.auditId, repeated: result.repeated }
}

/** The operators' tables, if this person may do this now. */
async function actingOn(
  context: AdminContext,
  attempt: Attempt,
  { right, isPart = false }: { readonly right: Right; readonly isPart?: boolean },
): Promise<AdminRecords | Refusal> {
  const { by, reason } = attempt
  const admin = permitted(context, by, right)
  if (isRefusal(admin)) return admin.kind === 'not-permitted' ? refuse(context, attempt, admin) : admin
  const fault = reasonFault(reason)
  if (fault !== undefined) return { kind: 'invalid', why: fault }
  const over = isPart ? undefined : await overLimit(context, by)
  if (over !== undefined) return refuse(context, attempt, over)
  return scopesOf(by) === undefined ? admin : refuse(context, attempt, { kind: 'not-found' })
}

interface OnMessage {
  readonly what: 'outbox' | 'inbox'
  readonly target: string
  readonly reason: string
  readonly act: 'redrive' | 'discard'
  /** Of one act on many messages: it was counted with the others. */
  readonly isPart?: boolean
}

type Done = 'redriven' | 'discarded' | 'not-found' | 'needs-id' | 'taken' | 'not-supported'

/**
 * The act commits with the audit of its own table. Its entry here is written before it: an entry without an act says that a person was about to act, and
 * an act without an entry would say nothing.
 */
async function onMessage(
  context: AdminContext,
  by: Actor,
  { what, target, reason, act, isPart = false }: OnMessage,
  run: (named: { readonly by: string; readonly reason: string }) => Promise<Done>,
): Promise<ActOutcome> {
  const attempt: Attempt = { by, act: `${what}.${act}`, reason, requestId: requestIdOf(context, by) }
  const admin = await actingOn(context, attempt, { right: 'redrive', isPart })
  if ('kind' in admin) return admin
  const { name } = by.who
  await context.call(() => admin.addEntry({ ...attempt, by: name, source: by.source, detail: target }))
  const done = await context.call(() => run({ by: name, reason }))
  if (done === 'redriven' || done === 'discarded') return { kind: 'done', row: undefined, auditId: '', repeated: false }
  if (done === 'not-supported') return { kind: 'not-supported', why: `the ${context.store.name} store has no ${what}` }
  if (done === 'not-found') return refuse(context, attempt, { kind: 'not-found' })
  const why = done === 'taken' ? 'a consumer is running it now: try again' : 'the message has no id: give one as `as`'
  return refuse(context, attempt, { kind: 'invalid', why })
}
