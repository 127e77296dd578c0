/** Subjects under one load, interleaved, so that a noisy machine hits all alike. */
import type { Context } from './context.ts'
import type { LoadResult } from './load/load.ts'
import { replayedPrefix } from './load/request.ts'
import { openStage, type Player, type Stage } from './stage.ts'
import { measureRun } from './run.ts'
import { byStart, inTurn } from './repetitions.ts'
import { warmUp } from './warm-up.ts'

export interface Scenario {
  readonly name: string
  readonly subjects: readonly string[]
  readonly connections: readonly number[]
  readonly seconds: number
  readonly workMs?: number
  /** Every request repeats one of this many keys that were completed before. Default: every key is new. */
  readonly replayedKeys?: number
  /** Runs of each subject in a repetition. Default 1; more where a ratio is so close to 1 that the spread of five would hide it. */
  readonly rounds?: number
  /** How often the servers are started anew, with new stores. Default 1. */
  readonly starts?: number
}

export interface Run extends LoadResult {
  readonly connections: number
  /** Processor time per request, user and system. */
  readonly appUs: number
  readonly databaseUs: number
  readonly loadUs: number
  /** Cores that nothing of ours kept busy meanwhile. */
  readonly othersCores: number
}

export interface SubjectRuns {
  readonly id: string
  readonly name: string
  readonly against: string
  readonly runs: readonly Run[]
  /** Acknowledged keys, and what was found in the store for them; absent where the store cannot be asked. */
  readonly proof: { readonly acknowledged: number; readonly rows: number; readonly completed: number } | undefined
  /** What does not add up. */
  readonly faults: readonly string[]
  readonly settings: string
}

export interface ScenarioResult {
  readonly subjects: readonly SubjectRuns[]
  /** Subjects that could not be measured here, and why. */
  readonly leftOut: readonly string[]
}

export async function measureScenario(scenario: Scenario, context: Context): Promise<ScenarioResult> {
  const { starts = 1, rounds = 1 } = scenario
  const parts: ScenarioResult[] = []
  for (const repetitions of byStart(context.repetitions * rounds, starts)) {
    parts.push(await measureStart(scenario, context, repetitions))
  }
  return parts.reduce(joined)
}

async function measureStart(scenario: Scenario, context: Context, repetitions: number): Promise<ScenarioResult> {
  const stage = await openStage(scenario, context)
  try {
    for (const player of stage.players) await prepare(player, scenario, context)
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (const connections of scenario.connections) {
        for (const player of inTurn(stage.players, repetition))
          await measureRun(player, { scenario, connections, context })
      }
    }
    return { subjects: await results(stage), leftOut: stage.leftOut }
  } finally {
    await stage.close()
  }
}

function joined(first: ScenarioResult, second: ScenarioResult): ScenarioResult {
  const subjects = first.subjects.map(subject => {
    const again = second.subjects.find(({ id }) => id === subject.id)
    if (again === undefined) throw new Error(`${subject.id} was measured at one start and not at the next`)
    return {
      ...subject,
      runs: [...subject.runs, ...again.runs],
      proof: subject.proof && again.proof && sumOf(subject.proof, again.proof),
      faults: [...subject.faults, ...again.faults],
    }
  })
  return { subjects, leftOut: first.leftOut }
}

type RowProof = NonNullable<SubjectRuns['proof']>

function sumOf(one: RowProof, other: RowProof): RowProof {
  return {
    acknowledged: one.acknowledged + other.acknowledged,
    rows: one.rows + other.rows,
    completed: one.completed + other.completed,
  }
}

/** Completes the keys that a replay run repeats, and compiles the hot paths. */
async function prepare(player: Player, scenario: Scenario, context: Context): Promise<void> {
  const { replayedKeys = 0, connections, workMs = 0 } = scenario
  if (replayedKeys > 0) {
    const keys = { kind: 'sequence', prefix: replayedPrefix } as const
    const { port } = player.server
    const order = { port, connections: 16, seconds: 60, keys, requestsMax: replayedKeys }
    player.expected += (await context.load.run(order)).acknowledged
  }
  await warmUp(player, { replayedKeys }, context)
  // What is compiled for one way is compiled again when requests take another.
  if (workMs > 0) await warmUp(player, { replayedKeys, work: 'on' }, context)
  if (connections.every(count => count === 1)) await warmUp(player, { replayedKeys, connections: 1 }, context)
}

async function results({ players }: Stage): Promise<SubjectRuns[]> {
  return Promise.all(
    players.map(async ({ subject, server, runs, proof, faults }) => ({
      id: subject.id,
      name: subject.name,
      against: subject.against,
      runs,
      proof,
      faults,
      settings: await server.settings(),
    })),
  )
}
