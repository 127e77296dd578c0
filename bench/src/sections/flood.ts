/** A tenant that sends a few requests, beside one that floods new keys and is refused by its limit. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { type LoadResult, refusalsOf } from '../load/load.ts'
import { type LoadGenerator, startLoadGenerator } from '../load/load-generator.ts'
import type { Keys } from '../load/request.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import { prove } from '../run.ts'
import type { Section, SectionResult } from '../section.ts'
import { openStage, type Player } from '../stage.ts'
import { byStart, inTurn } from '../repetitions.ts'
import { figure, median, pairwise } from '../statistics.ts'

const starts = 2
/** A window has 300 requests of the quiet tenant, so that three of them are slower than its 99th percentile. */
const windowSeconds = 6
const quietLoad = { tenant: 'quiet', connections: 1, perSecond: 50 } as const
const floodLoad = { tenant: 'flood', connections: 32 } as const
/** The flood begins so much earlier and ends later. By then it has used up the new keys that came since its last window. */
const marginSeconds = 1
/** Under a flood that is not refused, a window would show what many new keys cost. Refused late, it sends little. */
const refusedShareMin = 0.2

interface Window {
  readonly quiet: LoadResult
  readonly flood: LoadResult | undefined
}

interface Windows {
  readonly alone: readonly Window[]
  readonly flooded: readonly Window[]
}

interface Scene {
  readonly player: Player
  readonly context: Context
  /** A process of its own, so that the quiet tenant's clock is not held up by the flood's. */
  readonly flooder: LoadGenerator
}

export const flood: Section = {
  name: 'flood',
  what: 'a quiet tenant beside one that floods new keys over its limit, relative to the quiet one alone',
  async run(context) {
    const flooder = await startLoadGenerator(context.programs.load)
    try {
      return await onStage(context, flooder)
    } finally {
      await flooder.stop()
    }
  },
}

async function onStage(context: Context, flooder: LoadGenerator): Promise<SectionResult> {
  const stage = await openStage({ subjects: ['postgres-limited'] }, context)
  try {
    const [player] = stage.players
    if (player === undefined) throw new Error('PostgreSQL is missing')
    const windows = await measure({ player, context, flooder })
    return resultOf(windows, player.faults, await player.server.settings())
  } finally {
    await stage.close()
  }
}

async function measure(scene: Scene): Promise<Windows> {
  const { player, context } = scene
  const windows = { alone: new Array<Window>(), flooded: new Array<Window>() }
  for (const repetitions of byStart(context.repetitions, starts)) {
    await player.restart()
    await warmUp(scene)
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (const state of inTurn(['alone', 'flooded'] as const, repetition))
        windows[state].push(await measureWindow(scene, state))
    }
  }
  return windows
}

/** No two loads share a key. */
let serial = 0

function newKeys(): Keys {
  return { kind: 'new', prefix: `flood${++serial}-` }
}

/** Both ways: of a flood that is refused, and of a request alone. The quiet tenant's own limit stays untouched. */
async function warmUp({ player, context: { load } }: Scene): Promise<void> {
  const { port } = player.server
  const refused = { port, ...floodLoad, seconds: 15, requestsMax: 28_000, keys: newKeys() }
  const alone = { port, tenant: 'warm-up', connections: 1, seconds: 3, requestsMax: 3_000, keys: newKeys() }
  for (const order of [refused, alone]) player.expected += (await load.run(order)).acknowledged
}

async function measureWindow({ player, context, flooder }: Scene, state: keyof Windows): Promise<Window> {
  const { port } = player.server
  const seconds = context.quick ? 1 : windowSeconds
  const runsBefore = await player.server.runs()
  const floodSeconds = seconds + 2 * marginSeconds
  const others =
    state === 'alone' ? undefined : flooder.run({ port, ...floodLoad, seconds: floodSeconds, keys: newKeys() })
  await delay(marginSeconds * 1_000)
  const [own, flood] = await Promise.all([context.load.run({ port, ...quietLoad, seconds, keys: newKeys() }), others])
  const acknowledged = own.acknowledged + (flood?.acknowledged ?? 0)
  player.expected += acknowledged
  player.faults.push(...faultsOf({ quiet: own, flood }))
  await prove(player, { newRuns: acknowledged, runsBefore })
  return { quiet: own, flood }
}

function faultsOf({ quiet, flood }: Window): string[] {
  const faults: string[] = []
  if (refusalsOf(quiet) > 0) faults.push(`the quiet tenant was refused: ${JSON.stringify(quiet.refused)}`)
  if (flood === undefined) return faults
  const { acknowledged, refused } = flood
  if ((refused[429] ?? 0) < refusedShareMin * (acknowledged + refusalsOf(flood)))
    faults.push(`the flood was not refused by its limit: ${acknowledged} granted, ${JSON.stringify(refused)}`)
  return faults
}

function resultOf(windows: Windows, faults: readonly string[], settings: string): SectionResult {
  const { alone, flooded } = windows
  const ratio = (name: 'p50Ms' | 'p99Ms', what: string) =>
    figure(
      pairwise(
        flooded.map(({ quiet }) => quiet[name]),
        alone.map(({ quiet }) => quiet[name]),
      ),
      '×',
      `${what} of the quiet tenant beside a flood over alone`,
    )
  return {
    markdown: markdownOf(windows),
    figures: { 'quiet p50': ratio('p50Ms', 'median latency'), 'quiet p99': ratio('p99Ms', '99th percentile') },
    faults: [...new Set(faults)],
    settings: [settings],
    data: windows,
  }
}

function markdownOf({ alone, flooded }: Windows): string {
  const row = (name: string, windows: readonly Window[]) => {
    const floods = windows.flatMap(({ flood }) => flood ?? [])
    const of = (values: readonly number[]) => (values.length === 0 ? '' : Math.round(median(values)).toString())
    return [
      name,
      of(windows.map(({ quiet }) => quiet.acknowledged)),
      ...(['p50Ms', 'p95Ms', 'p99Ms'] as const).map(at =>
        withSpread(
          windows.map(({ quiet }) => quiet[at]),
          1,
        ),
      ),
      of(floods.map(({ requestsPerSecond }) => requestsPerSecond)),
      of(floods.map(load => (refusalsOf(load) / load.acknowledged) * load.requestsPerSecond)),
    ]
  }
  const head = ['window', 'requests', 'p50 ms', 'p95 ms', 'p99 ms', 'granted to the flood/s', 'refused of it/s']
  const table = markdownTable(head, [row('the quiet tenant alone', alone), row('beside the flood', flooded)])
  return [
    `### Flood: ${quietLoad.perSecond} requests a second beside ${floodLoad.connections} connections that ask for new keys without end`,
    table,
    'Both tenants have the same limit. In brackets: the lowest and the highest window.',
  ].join('\n\n')
}
