/** What people and the reaper do with messages. */
import type { Outbox, OutboxLag, ParkedMessage, Redrive } from '../../../ports/outbox.ts'
import type { Act } from '../../../ports/store.ts'
import { lagCountMax, parkedListMax } from '../../shared/outbox/message.ts'
import type { Tables } from '../tables.ts'
import { type Aside, asideOf } from './lanes.ts'
import { toMessage } from './next.ts'

function allAside({ outbox }: Tables): readonly Aside[] {
  return outbox.lanes.flatMap(asideOf)
}

export function parked(tables: Tables, { limit, after }: { limit: number; after?: string }): readonly ParkedMessage[] {
  const afterPosition = positionOf(after) ?? 0
  return allAside(tables)
    .flatMap(one => (one.parkedAtMs === undefined ? [] : [{ ...one, parkedAtMs: one.parkedAtMs }]))
    .filter(({ message }) => message.position > afterPosition)
    .sort((left, right) => left.message.position - right.message.position)
    .slice(0, Math.min(limit, parkedListMax))
    .map(one => ({
      ...toMessage(one.message, one),
      cause: one.cause,
      history: one.history,
      parkedAtMs: one.parkedAtMs,
    }))
}

/** What people hand in is not always a position. */
export function positionOf(position: string | undefined): number | undefined {
  return position !== undefined && /^\d{1,15}$/.test(position) ? Number(position) : undefined
}

/** In place, with its history. */
export function redrive(
  { outbox, now }: Tables,
  position: string,
  { by, reason }: Act,
): Awaited<ReturnType<Outbox<unknown>['redrive']>> {
  const at = positionOf(position)
  if (at === undefined) return { kind: 'not-found' }
  const lane = outbox.lanes.find(({ aside }) => aside.get(at)?.parkedAtMs !== undefined)
  const one = lane?.aside.get(at)
  if (one === undefined) return { kind: 'not-found' }
  lane?.aside.set(at, { ...one, parkedAtMs: undefined, dueAtMs: now(), attempts: 0, crashes: 0 })
  outbox.redrives.set(at, [...(outbox.redrives.get(at) ?? []), { by, reason, atMs: now() }])
  return { kind: 'redriven' }
}

export function redrives({ outbox }: Tables, position: string): readonly Redrive[] {
  return outbox.redrives.get(positionOf(position) ?? 0) ?? []
}

export function downstreamId({ outbox }: Tables, position: string): string | undefined {
  return outbox.downstreamIds.get(positionOf(position) ?? 0)
}

/** Delivered: before the cursor of its lane, and not aside. */
export function prune({ outbox, now }: Tables, { limit, keepMs }: { limit: number; keepMs: number }): number {
  const waiting = new Set(
    outbox.lanes.flatMap(({ fresh, aside }) => [...fresh.map(({ position }) => position), ...aside.keys()]),
  )
  const old = [...outbox.messages.values()]
    .filter(({ position, createdAtMs }) => createdAtMs <= now() - keepMs && !waiting.has(position))
    .slice(0, limit)
  for (const { position } of old) {
    outbox.messages.delete(position)
    outbox.downstreamIds.delete(position)
  }
  return old.length
}

/** Nothing is held back: a message is there when its transaction has committed. */
export function lag(tables: Tables): OutboxLag {
  const aside = allAside(tables)
  const parkedCount = aside.filter(one => one.parkedAtMs !== undefined).length
  const waiting = [
    ...tables.outbox.lanes.flatMap(({ fresh }) => fresh),
    ...aside.filter(one => one.parkedAtMs === undefined).map(one => one.message),
  ]
  const oldestAtMs = waiting.reduce((oldest, { createdAtMs }) => Math.min(oldest, createdAtMs), tables.now())
  const oldestMs = tables.now() - oldestAtMs
  return { waiting: Math.min(waiting.length, lagCountMax), heldBack: 0, oldestMs, parked: parkedCount }
}
