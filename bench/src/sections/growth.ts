/** Growth: ten million rows against an empty table, the reaper under load, and what a sweep costs. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { killOwners, type SweepCost, sweepDead } from '../growth/dead-leases.ts'
import { preload } from '../growth/preload.ts'
import { countedFaults } from '../growth/proof.ts'
import { replayedPrefix } from '../load/request.ts'
import { warmUp } from '../warm-up.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import { measureRun } from '../run.ts'
import type { Run } from '../scenario.ts'
import type { Section, SectionResult } from '../section.ts'
import { startServer } from '../server/server-process.ts'
import { openStage, type Player } from '../stage.ts'
import { byStart, inTurn } from '../repetitions.ts'
import { type Figure, figure, median, pairwise } from '../statistics.ts'

const deadLeases = 10
const starts = 2
/** As many as the reaper deletes in all of its runs, and more. */
const expiredShare = 0.03

interface Pair {
  readonly empty: Player
  readonly full: Player
}

interface Grown {
  readonly rows: number
  readonly preloadSeconds: number
  readonly newKeys: { readonly empty: readonly Run[]; readonly full: readonly Run[] }
  readonly replays: { readonly empty: readonly Run[]; readonly full: readonly Run[] }
  readonly reaper: { readonly off: readonly Run[]; readonly on: readonly Run[] }
  readonly sweep: SweepCost
}

export const growth: Section = {
  name: 'growth',
  what: 'ten million completed rows against an empty table; the reaper under load; the cost of a sweep',
  async run(context) {
    const rows = context.quick ? 200_000 : 10_000_000
    const stage = await openStage({ subjects: ['postgres', 'postgres'], counted: false }, context)
    try {
      const [empty, full] = stage.players
      if (empty === undefined || full === undefined) throw new Error('PostgreSQL is missing')
      const grown = await grow({ empty, full }, rows, context)
      return resultOf(grown, [...empty.faults, ...full.faults], await full.server.settings())
    } finally {
      await stage.close()
    }
  },
}

async function grow(pair: Pair, rows: number, context: Context): Promise<Grown> {
  const { empty, full } = pair
  const startedAt = performance.now()
  await context.load.run({
    port: full.server.port,
    connections: 1,
    seconds: 5,
    keys: { kind: 'sequence', prefix: 'seed-' },
    requestsMax: 1,
  })
  const expired = Math.round(rows * expiredShare)
  await preload({ url: full.place, rows, expired })
  const preloadSeconds = (performance.now() - startedAt) / 1_000
  await killOwners(full.place, deadLeases, context)
  const diedAtMs = performance.now()
  const newKeys = await interleave(pair, { context, seconds: 1.5 })
  const keys = { kind: 'sequence', prefix: replayedPrefix } as const
  await context.load.run({ port: empty.server.port, connections: 32, seconds: 30, keys, requestsMax: smallTable })
  const replays = await interleave(pair, { context, seconds: 1.5, replayedOf: rows - expired })
  // The seed is a row, too.
  const expected = { completed: rows + 1 + full.expected, inProgress: deadLeases }
  full.faults.push(...(await countedFaults(full.place, expected)))
  const reaper = await reap(full, context)
  const sweep = await sweepDead(full.place, { diedAtMs, passes: context.repetitions })
  return { rows, preloadSeconds, newKeys, replays, reaper, sweep }
}

/** Keys that are replayed from the table that is not large. */
const smallTable = 1_000

async function interleave(
  { empty, full }: Pair,
  { context, seconds, replayedOf }: { context: Context; seconds: number; replayedOf?: number },
): Promise<{ empty: Run[]; full: Run[] }> {
  const before = { empty: empty.runs.length, full: full.runs.length }
  const replayedKeys = (player: Player) => (replayedOf === undefined ? 0 : player === full ? replayedOf : smallTable)
  for (const repetitions of byStart(context.repetitions, starts)) {
    for (const player of [empty, full]) {
      await player.restart()
      await warmUp(player, { replayedKeys: replayedKeys(player) }, context)
    }
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (const player of inTurn([empty, full], repetition)) {
        const scenario = { seconds, replayedKeys: replayedKeys(player) }
        await measureRun(player, { scenario, connections: 64, context })
      }
    }
  }
  return { empty: empty.runs.slice(before.empty), full: full.runs.slice(before.full) }
}

/** Steady load with room to spare, so that the tail shows what the reaper does to it. */
const reaperLoad = { workMs: 20, connections: 32, seconds: 2 }
/** Its first turn comes within a second of its start. */
const reaperStartMs = 1_200

async function reap(full: Player, context: Context): Promise<{ off: Run[]; on: Run[] }> {
  const { subject, place } = full
  const argument = { subject, place, workMs: reaperLoad.workMs, peerFile: undefined, counted: false }
  const server = await startServer(context.programs.server, argument)
  const runs = { off: new Array<Run>(), on: new Array<Run>() }
  const { connections, seconds } = reaperLoad
  const measured = (state: 'off' | 'on'): Player => ({ ...full, server, runs: runs[state] })
  const measure = async (state: 'off' | 'on') => {
    if (state === 'on') {
      await server.reaper('on')
      await delay(reaperStartMs)
    }
    await measureRun(measured(state), { scenario: { seconds }, connections, context })
    if (state === 'on') await server.reaper('off')
  }
  try {
    for (const work of ['off', 'on'] as const) await warmUp(measured('off'), { replayedKeys: 0, work }, context)
    for (let repetition = 0; repetition < context.repetitions; repetition++) {
      for (const state of inTurn(['off', 'on'] as const, repetition)) await measure(state)
    }
    return runs
  } finally {
    await server.stop()
  }
}

function resultOf(grown: Grown, faults: readonly string[], settings: string): SectionResult {
  const { newKeys, replays, reaper, sweep } = grown
  const perSecond = (runs: readonly Run[]) => runs.map(run => run.requestsPerSecond)
  const p99 = (runs: readonly Run[]) => runs.map(run => run.p99Ms)
  const figures: Record<string, Figure> = {
    'new keys over empty': figure(
      pairwise(perSecond(newKeys.full), perSecond(newKeys.empty)),
      '×',
      'new keys over an empty table',
    ),
    'replays over empty': figure(
      pairwise(perSecond(replays.full), perSecond(replays.empty)),
      '×',
      'replays over a small table',
    ),
    'reaper p99': figure(
      pairwise(p99(reaper.on), p99(reaper.off)),
      '×',
      '99th percentile with the reaper over without',
    ),
    'sweep pass': figure(sweep.laterPassesMs, 'ms', 'one pass of the sweeper after its first'),
  }
  const missing = sweep.swept === deadLeases ? [] : [`the sweeper found ${sweep.swept} of ${deadLeases} dead leases`]
  return { markdown: markdownOf(grown), figures, faults: [...faults, ...missing], settings: [settings], data: grown }
}

function markdownOf({ rows, preloadSeconds, newKeys, replays, reaper, sweep }: Grown): string {
  const million = `${(rows / 1e6).toLocaleString('en')} million rows`
  const row = (name: string, runs: readonly Run[], base?: readonly Run[]) => [
    name,
    Math.round(median(runs.map(run => run.requestsPerSecond))).toString(),
    base === undefined
      ? ''
      : withSpread(
          pairwise(
            runs.map(run => run.requestsPerSecond),
            base.map(run => run.requestsPerSecond),
          ),
          3,
        ),
    withSpread(
      runs.map(run => run.p99Ms),
      1,
    ),
    Math.round(median(runs.map(run => run.appUs))).toString(),
    Math.round(median(runs.map(run => run.databaseUs))).toString(),
  ]
  const table = markdownTable(
    ['case', 'req/s', 'ratio (min to max)', 'p99 ms (min to max)', 'app µs/req', 'db µs/req'],
    [
      row('new keys, empty table', newKeys.empty),
      row(`new keys, ${million}`, newKeys.full, newKeys.empty),
      row(`replays of ${smallTable} keys, small table`, replays.empty),
      row(`replays of random keys, ${million}`, replays.full, replays.empty),
      row(`20 ms of work, 32 connections, ${million}`, reaper.off),
      row('the same with the reaper running', reaper.on, reaper.off),
    ],
  )
  const sweeps = `The sweeper found ${sweep.swept} dead leases among them in ${sweep.firstPassMs.toFixed(0)} ms, its first pass; a later pass takes ${withSpread(sweep.laterPassesMs, 1)} ms.`
  return [
    `### Growth: ${million} in the table`,
    table,
    `${sweeps} The rows were made in ${preloadSeconds.toFixed(0)} s.`,
  ].join('\n\n')
}
