/** One run of one subject: throughput, latency, processor time, and the proof that nothing was lost or done twice. */
import type { Context } from './context.ts'
import { refusalsOf } from './load/load.ts'
import { replayedOf } from './load/request.ts'
import { machineUs, processUs } from './machine/cpu.ts'
import type { Scenario } from './scenario.ts'
import type { Player } from './stage.ts'

export interface RunOptions {
  readonly scenario: Pick<Scenario, 'seconds' | 'replayedKeys'>
  readonly connections: number
  readonly context: Context
}

/** A few refusals on a busy machine are back-pressure, and counted in the table; more, and the figure is of something else. */
const refusedShareMax = 0.01
/** No two runs share a key. */
let serial = 0

export async function measureRun(player: Player, options: RunOptions): Promise<void> {
  const { scenario, connections, context } = options
  const { replayedKeys = 0 } = scenario
  const seconds = context.quick ? Math.min(scenario.seconds, 0.6) : scenario.seconds
  const keys = replayedKeys > 0 ? replayedOf(replayedKeys) : ({ kind: 'new', prefix: `run${++serial}-` } as const)
  const runsBefore = await player.server.runs()
  const before = clocks(player, context)
  const result = await context.load.run({ port: player.server.port, connections, seconds, keys })
  if (result.acknowledged === 0)
    throw new Error(`${player.subject.name} answered nothing but ${JSON.stringify(result.refused)}`)
  const spent = since(before, clocks(player, context))
  const refused = refusalsOf(result)
  const requests = Math.max(1, result.acknowledged + refused)
  player.runs.push({
    ...result,
    connections,
    appUs: spent.app / requests,
    databaseUs: spent.database / requests,
    loadUs: spent.load / requests,
    othersCores: Math.max(0, spent.machine - spent.app - spent.database - spent.load) / (spent.seconds * 1e6),
  })
  if (refused > requests * refusedShareMax)
    player.faults.push(`refused ${refused} of ${requests} requests: ${JSON.stringify(result.refused)}`)
  if (replayedKeys === 0) player.expected += result.acknowledged
  // Who has no guard runs the handler every time.
  const replays = replayedKeys > 0 && player.subject.guard !== 'none'
  await prove(player, { newRuns: replays ? 0 : result.acknowledged, runsBefore })
}

/** That the handler ran once for each of the keys that were acknowledged since `runsBefore`, and that each has its row. */
export async function prove(
  player: Player,
  { newRuns, runsBefore }: { newRuns: number; runsBefore: number },
): Promise<void> {
  const { runs, stored, faults } = await player.server.proof()
  player.faults.push(...faults)
  if (runs - runsBefore !== newRuns) {
    player.faults.push(`the handler ran ${runs - runsBefore} times for ${newRuns} new keys`)
  }
  const { guard } = player.subject
  if (stored === undefined || guard === 'none') return
  const { expected } = player
  const keys = guard === 'own-transaction' ? [] : [stored.rows, stored.completed]
  const business = guard === 'own-transaction' || guard === 'atomic' ? [stored.businessRows] : []
  if (keys.length > 0) player.proof = { acknowledged: expected, rows: stored.rows, completed: stored.completed }
  if ([...keys, ...business].every(count => count === expected)) return
  player.faults.push(
    `${expected} acknowledged, ${stored.rows} rows, ${stored.completed} completed, ${stored.businessRows} business rows`,
  )
}

interface Clocks {
  readonly app: number
  readonly database: number
  readonly load: number
  readonly machine: number
  readonly seconds: number
}

function clocks({ server, databaseUs }: Player, { load }: Context): Clocks {
  return {
    app: processUs(server.pid),
    database: databaseUs(),
    load: processUs(load.pid),
    machine: machineUs(),
    seconds: performance.now() / 1_000,
  }
}

function since(before: Clocks, after: Clocks): Clocks {
  const names = Object.keys(before) as (keyof Clocks)[]
  return Object.fromEntries(names.map(name => [name, after[name] - before[name]])) as Record<keyof Clocks, number>
}
