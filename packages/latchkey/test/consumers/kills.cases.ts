/** Consumers that are killed at any moment between delivery and acknowledgement: nothing is lost, and nothing happens twice that must not. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openPlace, type Place } from '../processes/database.ts'
import type { BrokerName } from './brokers/all.ts'
import type { Kind } from './consumer-process.ts'
import { consumerProcesses } from './consumer-processes.ts'

const messages = 40
/** Moments of the engine and of the handler, spread over a delivery. */
const deaths = [3, 4, 5, 11, 18, 27]
/** At the same time in one process. */
const concurrency = 4

export function itSurvivesKills(broker: BrokerName, url: () => string): void {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-consumers-'))
  const placeName = join(directory, 'shop.db')
  let place: Place
  const counted = new Map<Kind, Promise<readonly number[]>>()
  beforeAll(async () => {
    place = await openPlace(placeName)
    await place.migrate()
    // All kinds at once: they spend most of their time waiting for the leases of the dead.
    for (const kind of ['atomic', 'rerun', 'hold'] as const) {
      const counts = countsOf(kind)
      // Its test fails with it.
      counts.catch(() => undefined)
      counted.set(kind, counts)
    }
  })
  afterAll(async () => {
    await place.close()
    rmSync(directory, { recursive: true, force: true })
  })
  // Killed before the place is closed: the last hook runs first.
  const processes = consumerProcesses('killed', () => ({ broker, url: url(), placeName, place }))

  /** How often each happened, after six processes have died over them. */
  async function countsOf(kind: Kind): Promise<readonly number[]> {
    const ids = await processes.publish(kind, messages)
    for (const nth of deaths) await processes.startAndDie(kind, { nth })
    await processes.start(kind)
    await processes.start(kind)
    return processes.countsOf(kind, ids)
  }

  it('book each message once in its transaction', { timeout: 300_000 }, async () => {
    expect(await counted.get('atomic')).toEqual(Array.from({ length: messages }, () => 1))
  })

  it('run each message at least once, and once more only where a process died', { timeout: 300_000 }, async () => {
    const counts = (await counted.get('rerun')) ?? []
    expect(Math.min(...counts)).toBe(1)
    expect(counts.reduce((sum, times) => sum + times, 0)).toBeLessThanOrEqual(messages + deaths.length * concurrency)
  })

  it('never run a message twice where it must not run again', { timeout: 300_000 }, async () => {
    const counts = (await counted.get('hold')) ?? []
    expect(Math.max(...counts)).toBe(1)
    expect(counts.filter(times => times === 0).length).toBeLessThanOrEqual(deaths.length * concurrency)
  })
}
