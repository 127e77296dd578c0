/** Consumers that are killed at any moment between delivery and acknowledgement: nothing is lost, and nothing happens twice that must not. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { forkProgram } from '../../../../test/programs/program.ts'
import { openPlace, type Place } from '../processes/database.ts'
import type { ConsumerProcessArgument } from './consumer-process.ts'

export type Kind = ConsumerProcessArgument['kind']

export interface KilledBroker {
  readonly name: ConsumerProcessArgument['broker']
  readonly url: string
  /** To an empty queue for this kind. */
  publish(kind: Kind, ids: readonly string[]): Promise<void>
  /** Messages that it has, or has not heard of. */
  waiting(kind: Kind): Promise<number>
}

const messages = 40
/** Moments of the engine and of the handler, spread over a delivery. */
const deaths = [3, 4, 5, 11, 18, 27]
/** At the same time in one process. */
const concurrency = 4

export function itSurvivesKills(broker: () => KilledBroker): void {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-consumers-'))
  const placeName = join(directory, 'shop.db')
  let place: Place
  const running: ChildProcess[] = []
  beforeAll(async () => {
    place = await openPlace(placeName)
    await place.migrate()
  })
  afterEach(async () => {
    for (const child of running.splice(0)) await killed(child)
  })
  afterAll(async () => {
    await place.close()
    rmSync(directory, { recursive: true, force: true })
  })

  async function start(kind: Kind, diesAt?: number): Promise<ChildProcess> {
    const { name, url } = broker()
    const argument: ConsumerProcessArgument = { broker: name, url, place: placeName, kind, diesAt }
    const child = await forkProgram(new URL('./consumer-process.ts', import.meta.url), [JSON.stringify(argument)])
    running.push(child)
    return child
  }

  /** How often each happened, after six processes have died over them. */
  async function countsOf(kind: Kind): Promise<readonly number[]> {
    const ids = Array.from({ length: messages }, (_, index) => `m${String(index).padStart(3, '0')}`)
    await broker().publish(kind, ids)
    for (const diesAt of deaths) {
      const [, signal]: unknown[] = await once(await start(kind, diesAt), 'exit')
      expect(signal).toBe('SIGKILL')
    }
    await start(kind)
    await start(kind)
    const settled = async () => expect(await broker().waiting(kind)).toBe(0)
    await vi.waitFor(settled, { timeout: 120_000, interval: 200 })
    const count = (label: string) => (kind === 'atomic' ? place.businessRows(label) : place.executions(label))
    return Promise.all(ids.map(id => count(`${broker().name}/${kind}/${id}`)))
  }

  it('book each message once in its transaction', { timeout: 180_000 }, async () => {
    expect(await countsOf('atomic')).toEqual(Array.from({ length: messages }, () => 1))
  })

  it('run each message at least once, and once more only where a process died', { timeout: 180_000 }, async () => {
    const counts = await countsOf('rerun')
    expect(Math.min(...counts)).toBe(1)
    expect(counts.reduce((sum, times) => sum + times, 0)).toBeLessThanOrEqual(messages + deaths.length * concurrency)
  })

  it('never run a message twice where it must not run again', { timeout: 180_000 }, async () => {
    const counts = await countsOf('hold')
    expect(Math.max(...counts)).toBe(1)
    expect(counts.filter(times => times === 0).length).toBeLessThanOrEqual(deaths.length * concurrency)
  })
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
