/** Every point, first and second hit, for each kind: killed there, then retried until it ends, then counted. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isLatchkeyError } from 'latchkey'
import { programOf } from '../../../../test/programs/program.ts'
import { openPlace, type Place } from '../processes/database.ts'
import { type Kind, kinds, points, runner } from './scenarios.ts'

/** Processes dying at the same time: the machine's cores. */
const atOnce = 3
const endsWithinMs = 40_000

export function itSurvivesEveryPoint(placeName: () => string, carried: readonly Kind[] = kinds): void {
  let place: Place
  beforeAll(async () => {
    place = await openPlace(placeName())
    await place.migrate()
  })
  afterAll(() => place.close())

  it.each(carried)('%s: dies at every point, ends, and happens once', { timeout: 300_000 }, async kind => {
    const deaths = Object.keys(points[kind]).flatMap(point =>
      [1, 2].map(hit => ({ kind, point, hit, label: `${kind}-${point}-${hit}` })),
    )
    const died: Record<string, number> = {}
    await inGroups(deaths, async death => {
      if ((await die({ place: placeName(), ...death })) === 'SIGKILL') died[death.point] = (died[death.point] ?? 0) + 1
      const end = await untilItEnds(place, kind, death.label)
      expect({ ...death, ...(await countsOf(place, death.label)) }).toMatchObject(expected(kind, end))
    })
    // A point that no process ever reached would prove nothing.
    expect(died).toEqual(points[kind])
  })
}

async function die(asked: object): Promise<NodeJS.Signals | null> {
  const program = await programOf(new URL('./killed-process.ts', import.meta.url))
  const child = spawn(process.execPath, [program, JSON.stringify(asked)], { stdio: 'inherit' })
  const [, signal]: unknown[] = await once(child, 'exit')
  return signal as NodeJS.Signals | null
}

type End = 'completed' | 'unknown'

/** As a client does: the same key, until the answer is final. */
async function untilItEnds(place: Place, kind: Kind, label: string): Promise<End> {
  const { run } = runner(place)
  const until = performance.now() + endsWithinMs
  for (;;) {
    try {
      await run(kind, label)
      return 'completed'
    } catch (error) {
      if (isLatchkeyError(error, 'outcome-unknown')) return 'unknown'
      if (performance.now() > until) throw error
      await new Promise(resolve => setTimeout(resolve, 200))
    }
  }
}

async function countsOf(
  place: Place,
  label: string,
): Promise<{ charges: number; receipts: number; record: number; receipt: number }> {
  return {
    charges: await place.executions(`charges of ${label}`),
    receipts: await place.executions(`charges of receipt ${label}`),
    record: await place.businessRows(`${label}/record`),
    receipt: await place.businessRows(`${label}/receipt`),
  }
}

/** What the tables must say afterwards, given how it ended. */
function expected(kind: Kind, end: End): object {
  const oneOrNone = expect.toSatisfy((count: number) => count <= 1)
  switch (kind) {
    case 'hold':
      return end === 'completed' ? { charges: 1 } : { charges: oneOrNone }
    case 'rerun':
      return { charges: 1 }
    case 'atomic':
      return { record: 1 }
    case 'phased':
      // The provider recognises our key: an interrupted call is repeated, and never ends in doubt.
      expect(end).toBe('completed')
      return { charges: 1, record: 1, receipt: 1 }
    case 'effects':
      expect(end).toBe('completed')
      return { charges: 1, receipts: 1 }
    case 'effects-without-dedup':
      return end === 'completed' ? { charges: 1, receipts: 1 } : { charges: oneOrNone, receipts: oneOrNone }
    case 'phased-without-dedup':
      return end === 'completed' ? { charges: 1, record: 1, receipt: 1 } : { charges: oneOrNone, record: 1, receipt: 0 }
  }
}

async function inGroups<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const open = [...items]
  const worker = async () => {
    for (let item = open.shift(); item !== undefined; item = open.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}
