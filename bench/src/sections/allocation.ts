/** What a request allocates. Clearing it away costs time that no profile shows where it was caused. */
import type { Context } from '../context.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import { measureRun } from '../run.ts'
import type { Section, SectionResult } from '../section.ts'
import { openStage, type Player } from '../stage.ts'
import { byStart } from '../repetitions.ts'
import { figure, pairwise } from '../statistics.ts'
import { subjectOf } from '../subjects.ts'
import { warmUp } from '../warm-up.ts'

const subjects = ['bare', 'postgres', 'floor']
const load = { connections: 64, seconds: 0.5 }
const starts = 2

/** Kilobytes per request in each repetition, by the id of the subject. */
type Allocated = ReadonlyMap<string, number[]>

export const allocation: Section = {
  name: 'allocation',
  what: 'kilobytes per request on the JavaScript heap of the application: no work, 64 connections, every key new',
  async run(context) {
    const allocated: Allocated = new Map(subjects.map(id => [id, []]))
    const faults: string[] = []
    for (const repetitions of byStart(context.repetitions, starts))
      faults.push(...(await measureStart(allocated, repetitions, context)))
    return resultOf(allocated, faults)
  },
}

/** Returns the faults. */
async function measureStart(allocated: Allocated, repetitions: number, context: Context): Promise<string[]> {
  const stage = await openStage({ subjects }, context)
  try {
    for (const player of stage.players) await warmUp(player, { replayedKeys: 0 }, context)
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (const player of stage.players)
        allocated.get(player.subject.id)?.push(await kilobytesPerRequest(player, context))
    }
    return stage.players.flatMap(({ subject, faults }) => faults.map(fault => `${subject.name}: ${fault}`))
  } finally {
    await stage.close()
  }
}

async function kilobytesPerRequest(player: Player, context: Context): Promise<number> {
  const { connections, seconds } = load
  await player.server.allocations('start')
  await measureRun(player, { scenario: { seconds }, connections, context })
  const bytes = await player.server.allocations('end')
  return bytes / 1_024 / (player.runs.at(-1)?.acknowledged ?? Number.NaN)
}

function resultOf(allocated: Allocated, faults: readonly string[]): SectionResult {
  const bare = allocated.get('bare') ?? []
  const added = (id: string) => pairwise(allocated.get(id) ?? [], bare, (a, b) => a - b)
  const rows = [...allocated].map(([id, kilobytes]) => [
    subjectOf(id).name,
    withSpread(kilobytes, 1),
    id === 'bare' ? '' : withSpread(added(id), 1),
  ])
  const head = ['subject', 'KB per request (min to max)', 'over bare']
  return {
    markdown: ['### Allocation: no work, 64 connections, new keys', markdownTable(head, rows)].join('\n\n'),
    figures: { 'postgres over bare': figure(added('postgres'), 'KB', 'what a guarded request allocates over bare') },
    faults,
    data: Object.fromEntries(allocated),
  }
}
