/** What is measured: a server without Latchkey, and the same server with it, per kind and store. */

export type StoreName = 'memory' | 'sqlite' | 'postgres'

export interface Subject {
  readonly name: string
  readonly store: StoreName | undefined
  /** `bare`: the handler alone. `business`: the handler's own transaction, without a key. */
  readonly kind: 'bare' | 'business' | 'guarded' | 'atomic'
  /** The subject it is compared with, in the same repetition. */
  readonly against: string
}

export const subjects: readonly Subject[] = [
  { name: 'bare', store: undefined, kind: 'bare', against: 'bare' },
  { name: 'guarded on memory', store: 'memory', kind: 'guarded', against: 'bare' },
  { name: 'guarded on sqlite', store: 'sqlite', kind: 'guarded', against: 'bare' },
  { name: 'guarded on postgres', store: 'postgres', kind: 'guarded', against: 'bare' },
  { name: 'own transaction on sqlite', store: 'sqlite', kind: 'business', against: 'own transaction on sqlite' },
  { name: 'atomic on sqlite', store: 'sqlite', kind: 'atomic', against: 'own transaction on sqlite' },
  { name: 'own transaction on postgres', store: 'postgres', kind: 'business', against: 'own transaction on postgres' },
  { name: 'atomic on postgres', store: 'postgres', kind: 'atomic', against: 'own transaction on postgres' },
]

export interface Scenario {
  readonly name: string
  readonly title: string
  readonly workMs: number
  readonly connections: number
  /** Every request repeats one of this many keys that were completed before; 0: every key is new. */
  readonly replayedKeys: number
  /** Why a subject is left out, if it is. */
  leftOut(subject: Subject): string | undefined
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'work',
    title: '(a) 50 ms of work, 50 connections, new keys',
    workMs: 50,
    connections: 50,
    replayedKeys: 0,
    leftOut: ({ store, kind }) =>
      store === 'sqlite' && kind !== 'guarded'
        ? 'SQLite has one writer: 50 ms inside a transaction are 20 requests a second by construction'
        : undefined,
  },
  {
    name: 'saturation',
    title: '(b) no work, 64 connections, new keys',
    workMs: 0,
    connections: 64,
    replayedKeys: 0,
    leftOut: () => undefined,
  },
  {
    name: 'replay',
    title: '(c) no work, 64 connections, all replays',
    workMs: 0,
    connections: 64,
    replayedKeys: 500,
    leftOut: ({ kind }) => (kind === 'business' ? 'nothing to replay' : undefined),
  },
]
