/**
 * Short writes that wait at the same time share one transaction, and so one sync to the disk. The first in the queue leads: it
 * takes the lock, runs the others' work after its own and commits; only then does any of them get its result.
 */
import type { Clock } from '../../../ports/clock.ts'
import type { Observed } from '../../shared/observed.ts'
import { type Connection, untilFree } from './open.ts'
import type { Handle } from './handle.ts'
import { readNowMs } from '../keys/row.ts'
import type { QueueOptions } from './write-queue.ts'

/** More share little more: at this size the sync is a small part of the work. */
const membersMax = 256

/** Sockets and timers wait while a batch runs, and then for the disk on top of it. */
const batchMs = 10

/** Happens again after a rollback: it may depend on nothing but the file and the store's clock. */
export type Work<T> = ((handle: Handle) => T) | WorkOnItem<T>

/** Work that a batch does for all its members of one kind at once, after the others. `many` returns a value for each item. */
export interface WorkOnItem<T, Item = unknown> {
  readonly item: Item
  many(handle: Handle, items: readonly Item[]): readonly T[]
}

export interface WriteRequest<T> {
  readonly work: Work<T>
  /** It is on the disk. */
  committed(value: T): void
  failed(error: unknown): void
}

/** A write that begins and ends without an await, so that others may come before and after it in one transaction. */
export interface ShortWrite extends WriteRequest<unknown> {
  readonly sinceMs: number
  readonly deadlineMs: number
  /** What the last run of its work returned. */
  value: unknown
}

interface GroupCommitOptions {
  readonly own: Connection
  readonly clock: Clock
  readonly observed?: Observed
}

/** What leads a turn of the queue. */
export function groupCommit(parts: GroupCommitOptions): QueueOptions<ShortWrite>['lead'] {
  return (write, others, done) => void commit(parts, [write], others).finally(done)
}

/** Settles every member, and the `company` that it took along once it had the lock. */
async function commit(
  parts: GroupCommitOptions,
  members: readonly ShortWrite[],
  company: Iterable<ShortWrite> = [],
): Promise<void> {
  const { own, clock } = parts
  const leftMs = Math.min(...members.map(member => member.deadlineMs)) - clock.monotonicMs()
  try {
    const tried = await untilFree(clock, leftMs, () => tryTogether(own, clock, { members, company }))
    if (tried.kind === 'undone') return await inParts(parts, tried)
    parts.observed?.observer?.batch(tried.members.length, tried.begunAtMs - sinceMsOf(members))
    for (const member of tried.members) member.committed(member.value)
  } catch (error) {
    for (const member of members) member.failed(error)
  }
}

function sinceMsOf(members: readonly ShortWrite[]): number {
  return members.reduce((first, { sinceMs }) => Math.min(first, sinceMs), Infinity)
}

type CommitAttempt =
  | { readonly kind: 'committed'; readonly members: readonly ShortWrite[]; readonly begunAtMs: number }
  | { readonly kind: 'undone'; readonly members: readonly ShortWrite[]; readonly culprit: ShortWrite | undefined }

/** Throws for a single one, as its own transaction would: then no other write was taken along. */
function tryTogether(
  own: Connection,
  clock: Clock,
  given: { members: readonly ShortWrite[]; company: Iterable<ShortWrite> },
): CommitAttempt {
  const members = [...given.members]
  let running: ShortWrite | undefined
  own.handle.exec('BEGIN IMMEDIATE')
  try {
    const shared = atOneInstant(own.handle)
    const begunAtMs = clock.monotonicMs()
    const untilMs = begunAtMs + batchMs
    for (running of given.members) workAlone(running, shared)
    for (running of given.company) {
      members.push(running)
      workAlone(running, shared)
      if (members.length >= membersMax || clock.monotonicMs() >= untilMs) break
    }
    running = undefined
    workOnItems(members, shared)
    own.handle.exec('COMMIT')
    return { kind: 'committed', members, begunAtMs }
  } catch (error) {
    own.rollback()
    if (members.length === 1) throw error
    return { kind: 'undone', members, culprit: running }
  }
}

function workAlone(member: ShortWrite, handle: Handle): void {
  if (typeof member.work === 'function') member.value = member.work(handle)
}

function workOnItems(members: readonly ShortWrite[], handle: Handle): void {
  const kinds = new Map<WorkOnItem<unknown>['many'], { items: unknown[]; members: ShortWrite[] }>()
  for (const member of members) {
    if (typeof member.work === 'function') continue
    const { many, item } = member.work
    const kind = kinds.get(many) ?? { items: [], members: [] }
    kinds.set(many, kind)
    kind.items.push(item)
    kind.members.push(member)
  }
  for (const [many, kind] of kinds) {
    const values = many(handle, kind.items)
    kind.members.forEach((member, at) => (member.value = values[at]))
  }
}

/** The rollback undid the others' work as well: without the one that threw they are tried once more. */
async function inParts(
  parts: GroupCommitOptions,
  { members, culprit }: Extract<CommitAttempt, { kind: 'undone' }>,
): Promise<void> {
  const half = members.length >> 1
  const [first, second] =
    culprit === undefined
      ? [members.slice(0, half), members.slice(half)]
      : [members.filter(member => member !== culprit), [culprit]]
  for (const part of [first, second]) {
    await nextTurn()
    await commit(parts, part)
  }
}

function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** The clock is read once for all: a batch is short, and an instant a little in the past only makes a lease shorter. */
function atOneInstant(handle: Handle): Handle {
  let nowMs: number | undefined
  return { ...handle, nowMs: () => (nowMs ??= readNowMs(handle)) }
}
