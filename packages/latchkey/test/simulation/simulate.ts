/** One seed, from the first request until nothing is left to do. */
import type { Answer } from '../../src/engine/answer.ts'
import { startClient, startOperator } from './actors.ts'
import { createFleet, type Fleet } from './fleet.ts'
import { askedFor, operationNames } from './operations.ts'
import { noFaults } from './plan.ts'
import { setStage, type Stage } from './stage.ts'
import { isExpired, type StoredRow } from './stored-row.ts'

export interface Simulated {
  readonly violation: string | undefined
  readonly seen: ReadonlyMap<string, number>
  readonly steps: number
  readonly trace: readonly string[]
}

/** Virtual time after the last fault in which all must come to rest: the longest pause between two tries, twice. */
const restWithinMs = 900_000
/** Past every retention. */
const secondLifeAfterMs = 2 * 86_400_000
/** A run that never comes to an end is broken as well. */
const stepsMax = 200_000

interface Run {
  readonly stage: Stage
  readonly fleet: Fleet
  /** Clients that have not ended. */
  clients: number
  steps: number
}

export async function simulate(seed: number, { traced = false }: { traced?: boolean } = {}): Promise<Simulated> {
  const stage = setStage(seed, traced)
  const restore = withoutTimersAndStacks()
  const run: Run = { stage, fleet: createFleet(stage), clients: stage.plan.clients, steps: 0 }
  try {
    await act(run)
  } finally {
    restore()
  }
  const { history, world } = stage
  return { violation: history.broken(), seen: history.seen, steps: run.steps, trace: world.lines ?? [] }
}

async function act(run: Run): Promise<void> {
  const { stage, fleet } = run
  const { world, plan } = stage
  for (let n = 0; n < plan.clients; n++) {
    const ended = () => void (run.clients -= 1)
    startClient({ world, send: fleet.send, keys: plan.keys, requests: plan.requestsPerClient, ended })
  }
  if (plan.operator) startOperator(stage)
  await until(run, () => world.nowMs() >= plan.faultsUntilMs || run.clients === 0)
  world.faults = noFaults
  world.trace(() => 'no more faults')
  await rest(run)
  await askForEverything(run)
  if (!plan.secondLife) return
  // No call and no message takes two days.
  await until(run, () => stage.provider.idle() && stage.webhooks.idle())
  world.leap(secondLifeAfterMs)
  world.trace(() => 'two days later')
  await askForEverything(run)
  await rest(run)
}

/** I16: no client waits, no lease is dead, and what can continue by itself has ended. */
async function rest(run: Run): Promise<void> {
  const { world, database, history } = run.stage
  const deadlineMs = world.nowMs() + restWithinMs
  const { lookUps, webhooks } = run.stage.plan
  // Evidence that was kept is used.
  const unused = () => (lookUps || webhooks) && database.hasWaitingEvidence()
  const restless = () => {
    for (const row of database.rows.values()) if (!isAtRest(row, { nowMs: database.now(), lookUps })) return row
    return undefined
  }
  const rested = () => run.clients === 0 && restless() === undefined && !unused()
  await until(run, () => rested() || world.nowMs() >= deadlineMs)
  if (history.broken() !== undefined || rested()) return
  const late = restless()
  const who = late && `${late.operation} ${late.state} ${late.id}`
  history.break(`I16 no rest: ${run.clients} clients, ${unused() ? 'evidence waits' : 'no evidence waits'}, ${who}`)
}

/** A guarded row that failed waits for its client, which may never come; phased work is resumed, and what is unknown is looked up. */
function isAtRest(row: StoredRow, { nowMs, lookUps }: { nowMs: number; lookUps: boolean }): boolean {
  if (row.state === 'in_progress' || (row.state === 'pending' && !row.parked)) return false
  if (row.state === 'unknown') return row.parked || !lookUps
  const resumes = row.recovery === 'resume' && row.hasInput
  return row.state !== 'failed_retryable' || row.parked || !resumes || isExpired(row, nowMs)
}

/** Every row once more: nothing is in the way of an answer now. */
async function askForEverything(run: Run): Promise<void> {
  const { stage, fleet } = run
  const { world, plan, history, database } = stage
  const deadlineMs = world.nowMs() + restWithinMs
  const answers: (Answer | 'gone')[] = []
  let asked = 0
  for (const operation of operationNames) {
    for (let key = 1; key <= plan.keys; key++) {
      const again = askedFor(operation, `key ${key}`, 1)
      if (!database.rows.has(again.request.identity.id)) continue
      asked += 1
      fleet.send(again, answer => void answers.push(answer))
    }
  }
  await until(run, () => answers.length === asked || world.nowMs() >= deadlineMs)
  if (answers.length < asked) history.break(`I16 ${asked - answers.length} of ${asked} requests got no answer`)
}

async function until(run: Run, done: () => boolean): Promise<void> {
  const { world, history } = run.stage
  while (!done() && history.broken() === undefined) {
    if (!(await world.step())) return
    run.steps += 1
    if (run.steps > stepsMax) history.break(`I16 more than ${stepsMax} steps`)
  }
}

/**
 * `sleep` holds the real process alive by an interval, which a dead engine would never end. And thousands of errors are made
 * whose stacks are never read.
 */
function withoutTimersAndStacks(): () => void {
  const { setInterval } = globalThis
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  // Only clearInterval gets the handle, and takes anything.
  globalThis.setInterval = (() => undefined) as unknown as typeof setInterval
  return () => {
    globalThis.setInterval = setInterval
    Error.stackTraceLimit = stackTraceLimit
  }
}
