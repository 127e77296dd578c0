/**
 * One subject as a server process of its own. Started by fork with a JSON argument; tells its port, answers to messages
 * over the same channel, and ends with its parent.
 */
import type pg from 'pg'
import { createWorkers } from 'latchkey/workers'
import { floorRoute } from '../floor/route.ts'
import { floorStored } from '../floor/statements.ts'
import type { Subject } from '../subjects.ts'
import { countAllocations } from './allocation.ts'
import { type Backend, openBackend, type Stored } from './backends/backend.ts'
import { frameworks } from './frameworks.ts'
import { atomicRoute, guardedRoute, ownTransactionRoute } from './latchkey-routes.ts'
import { naiveRoute, naiveStored } from './naive.ts'
import { latchkeyOn } from './operations.ts'
import { orderWork, type Work } from './order.ts'
import { openOption, type OpenedOption } from './option.ts'
import { openPeer } from './peer.ts'
import { bareRoute, listenPlain, type PlainRoute } from './plain.ts'

export interface ServerArgument {
  readonly subject: Subject
  /** A file for SQLite, a URL for PostgreSQL and Redis. */
  readonly place: string
  readonly workMs: number
  /** The module of a peer. */
  readonly peerFile: string | undefined
  /** Whether a proof counts the rows. */
  readonly counted: boolean
}

export type ServerQuestion =
  | 'runs'
  | 'proof'
  | 'settings'
  | 'reaper on'
  | 'reaper off'
  | 'work on'
  | 'work off'
  | 'allocations start'
  | 'allocations end'

export interface Proof {
  /** How often the handler ran. */
  readonly runs: number
  readonly stored: Stored | undefined
  /** What shows that the option of the subject is not at work. */
  readonly faults: readonly string[]
}

interface Running {
  readonly port: number
  readonly backend: Backend | undefined
  readonly option: OpenedOption | undefined
  stored(): Promise<Stored | undefined>
}

const argument: ServerArgument = JSON.parse(process.argv[2] ?? '{}')
const work = orderWork(argument.workMs)
const running = await start(argument, work)
/** While allocations are counted. */
let endCount: (() => number) | undefined
const reaper = running.backend && createWorkers(latchkeyOn(running.backend), { only: ['reaper'] })

process.on('message', question => void answer(question as ServerQuestion).then(told => process.send?.(told)))
process.on('disconnect', () => process.exit(0))
process.send?.({ port: running.port })

async function start({ subject, place, peerFile }: ServerArgument, work: Work): Promise<Running> {
  if (peerFile !== undefined) {
    const { port, stored } = await openPeer(peerFile, place, work)
    const counted = async () => asStored(await stored())
    return { port, backend: undefined, option: undefined, stored: counted }
  }
  const backend = await openBackend(subject.store, place)
  const { frame, guard } = subject
  const option = subject.option && (await openOption(subject.option, backend))
  const port =
    frame === 'plain'
      ? await listenPlain(await routeOf(guard, { backend, work, option }))
      : await frameworks[frame](work, guard === 'none' ? undefined : backend)
  return { port, backend, option, stored: () => storedOf(guard, backend) }
}

async function storedOf(guard: Subject['guard'], backend: Backend | undefined): Promise<Stored | undefined> {
  if (guard === 'naive') return naiveStored(poolOf(backend))
  return guard === 'floor' ? floorStored(poolOf(backend)) : backend?.stored()
}

function poolOf(backend: Backend | undefined): pg.Pool {
  if (backend?.pool === undefined) throw new Error('the naive guard and the floor are written for PostgreSQL')
  return backend.pool
}

interface RouteParts extends Pick<Running, 'backend' | 'option'> {
  readonly work: Work
}

async function routeOf(guard: Subject['guard'], { backend, work, option }: RouteParts): Promise<PlainRoute> {
  if (guard === 'none') return bareRoute(work)
  if (backend === undefined) throw new Error(`${guard} needs a store`)
  switch (guard) {
    case 'guarded':
      return guardedRoute(backend, work, option?.options)
    case 'atomic':
      return atomicRoute(backend, work)
    case 'own-transaction':
      return ownTransactionRoute(backend, work)
    case 'naive':
      return naiveRoute(poolOf(backend), work)
    case 'floor':
      return floorRoute(poolOf(backend), work)
    case 'peer':
      throw new Error('a peer comes with its own file')
  }
}

/** A peer's store says how many keys it holds, and no more. */
function asStored(rows: number | undefined): Stored | undefined {
  return rows === undefined ? undefined : { rows, completed: rows, businessRows: 0 }
}

async function answer(question: ServerQuestion): Promise<unknown> {
  switch (question) {
    case 'runs':
      return work.runs()
    case 'proof':
      return proof()
    case 'settings':
      return (await running.backend?.settings()) ?? ''
    case 'reaper on':
      reaper?.start()
      return 'on'
    case 'reaper off':
      return reaper?.drain()
    case 'work on':
      work.switch('on')
      return 'on'
    case 'work off':
      work.switch('off')
      return 'off'
    case 'allocations start':
      endCount = countAllocations()
      return 0
    case 'allocations end':
      return endCount?.() ?? 0
  }
}

async function proof(): Promise<Proof> {
  const runs = work.runs()
  const stored = argument.counted ? await running.stored() : undefined
  return { runs, stored, faults: (await running.option?.faults(runs)) ?? [] }
}
