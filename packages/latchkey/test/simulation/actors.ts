/** The actors around the engines: clients that retry, and an operator who looks things up. */
import type { Answer } from '../../src/engine/answer.ts'
import { downstreamKey } from '../../src/engine/execution.ts'
import { json } from '../../src/engine/steps/json.ts'
import type { FoundVerdict } from '../../src/ports/reconciliation.ts'
import type { Database } from './database.ts'
import type { History } from './history.ts'
import { type Asked, askedFor, operationNames, type OperationName } from './operations.ts'
import type { Plan } from './plan.ts'
import type { Entry, Provider } from './provider.ts'
import type { Runs } from './runs.ts'
import type { StoredRow } from './stored-row.ts'
import type { World } from './world.ts'

/** `gone`: the connection broke, and the client does not know what became of it. */
export type Sent = (asked: Asked, answered: (answer: Answer | 'gone') => void) => void

const triesMax = 6

export interface ClientOptions {
  readonly world: World
  readonly send: Sent
  readonly keys: number
  readonly requests: number
  readonly ended: () => void
}

/** One request after the other; each is repeated until it has an answer, and some of them after that. */
export function startClient({ world, send, keys, requests, ended }: ClientOptions): void {
  const { chance } = world

  function next(left: number): void {
    if (left === 0) return ended()
    const operation: OperationName = chance.pick(operationNames)
    const key = `key ${chance.whole(1, keys)}`
    // Now and then a client uses a key for something else.
    const asked = askedFor(operation, key, chance.happens(0.06) ? 2 : 1)
    attempt(asked, { left, tries: triesMax })
  }

  function attempt(asked: Asked, { left, tries }: { left: number; tries: number }): void {
    send(asked, answer => {
      const settled = answer !== 'gone' && isFinal(answer) && chance.happens(0.7)
      if (settled || tries === 1) return world.at(chance.between(1, 4_000), () => next(left - 1))
      const pauseMs = chance.happens(0.4) ? chance.between(1, 100) : chance.between(200, 6_000)
      world.at(pauseMs, () => attempt(asked, { left, tries: tries - 1 }))
    })
  }

  world.at(chance.between(0, 3_000), () => next(requests))
}

function isFinal(answer: Answer): boolean {
  if (answer.kind === 'refused') return answer.refusal.code === 'key-reused' || answer.refusal.code === 'key-expired'
  return answer.kind === 'replayed' || (answer.kind === 'executed' && answer.stored === 'yes')
}

export interface OperatorOptions {
  readonly plan: Pick<Plan, 'lookUps'>
  readonly world: World
  readonly database: Database
  readonly history: History
  readonly provider: Provider
  readonly runs: Runs
}

const settledRetentionMs = 60_000
const act = { by: 'operator', reason: 'simulated' } as const

/** Knows the truth, and speaks only when nothing can change it any more: the quarantine, without guessing its length. */
export function startOperator({ plan, world, database, history, provider, runs }: OperatorOptions): void {
  const unknownSinceMs = new Map<string, number>()

  const start = () => {
    look().catch(error => history.break(`the operator failed: ${String(error)}`))
  }

  async function look(): Promise<void> {
    for (const [id, row] of [...database.rows]) {
      if (row.state !== 'unknown') unknownSinceMs.delete(id)
      if (row.parked && world.chance.happens(0.5)) await unpark(id)
      else if (row.state === 'unknown' && isForAPerson(row)) await settle(id, row)
    }
    world.at(world.chance.between(3_000, 12_000), start)
  }

  async function unpark(id: string): Promise<void> {
    await database.serve({ by: 'operator', what: 'unpark' }, store => store.unpark(id, act))
  }

  /** Where questions are asked, a person waits for the end of them, mostly. */
  function isForAPerson({ parked }: StoredRow): boolean {
    return parked || !plan.lookUps || world.chance.happens(0.05)
  }

  async function settle(id: string, row: StoredRow): Promise<void> {
    const sinceMs = unknownSinceMs.get(id) ?? world.nowMs()
    unknownSinceMs.set(id, sinceMs)
    if (runs.anyBefore(id, sinceMs) || provider.underWay(id)) return
    const open = row.steps.find(step => step.state === 'open')
    const key = open?.key ?? downstreamKey(id, 'work')
    const entry = provider.entry({ key, sinceMs: row.createdAtMs })
    const verdict = verdictOf(entry, open !== undefined)
    const evidence = { source: 'operator', verdict, atMs: database.now() } as const
    const settled = await database.serve({ by: 'operator', what: `settle ${verdict.kind}`, evidence }, store =>
      store.settle(id, verdict, act, settledRetentionMs),
    )
    if (settled.kind !== 'settled') history.break(`an operator's word is refused: ${settled.kind} ${id}`)
  }

  world.at(5_000, start)
}

function verdictOf(entry: Entry | undefined, ofEffect: boolean): FoundVerdict {
  if (entry === undefined) return { kind: 'never-happened' }
  const { kind, result } = entry
  return ofEffect ? { kind, value: JSON.stringify(result) } : { kind, outcome: json(200, result) }
}
