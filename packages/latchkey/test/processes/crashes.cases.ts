/** What four processes on one place must do, whichever store it is. Run by a test file per store. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLatchkey } from 'latchkey'
import { type Answer, type App, eventually, killDuring, post, startApp, startFleet } from './fleet.ts'
import type { AppArgument } from './app.ts'
import { openPlace, type Place } from './database.ts'

/** Short, so that a dead lease is seen soon; long enough that a busy machine does not lose a live one. */
const leaseMs = 3_000

interface Scene {
  place: Place
  apps: App[]
  argument: AppArgument
}

/** `transactional`: default true. */
export function itSurvivesCrashes(placeName: () => string, { transactional = true } = {}): void {
  // Filled before the first test runs.
  const scene = {} as Scene
  beforeAll(async () => {
    scene.argument = { place: placeName(), leaseMs, onInProgress: 'refuse' }
    scene.place = await openPlace(placeName())
    await scene.place.migrate()
    scene.apps = await startFleet(4, scene.argument)
  })
  afterAll(async () => {
    await Promise.all(scene.apps.map(app => app.stop()))
    await scene.place.close()
  })
  itRunsOnce(scene, transactional ? ['/hold', '/rerun', '/atomic'] : ['/hold', '/rerun'])
  itRecovers(scene)
  if (transactional) itRollsBack(scene)
}

function itRunsOnce(scene: Scene, paths: readonly string[]): void {
  const fifty = (path: string, asked: { key: string; label: string; slow?: number }, to = scene.apps) =>
    Promise.all(Array.from({ length: 50 }, (_, i) => post(to[i % to.length] as App, path, asked)))

  it.each(paths)('runs the handler of %s once for fifty simultaneous requests at four processes', async path => {
    const label = `fifty${path}`
    const answers = await fifty(path, { key: label, label, slow: 300 })
    expect(await scene.place.executions(label)).toBe(1)
    expect(answers.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
    expect(answers.filter(({ status }) => ![201, 409].includes(status))).toEqual([])
    const retry = await post(scene.apps[0] as App, path, { key: label, label, slow: 300 })
    expect(retry).toMatchObject({ status: 201, replayed: true })
  })

  it('gives all waiting callers at four processes the same bytes', async () => {
    const waiting = await startFleet(4, { ...scene.argument, onInProgress: 'wait' })
    for (const path of paths.filter(each => each !== '/rerun')) {
      const label = `waiting${path}`
      const answers = await fifty(path, { key: label, label, slow: 300 }, waiting)
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
      expect(answers.filter(({ replayed }) => replayed)).toHaveLength(49)
      expect(await scene.place.executions(label)).toBe(1)
    }
    await Promise.all(waiting.map(app => app.stop()))
  })
}

/** Starts a slow request at a process of its own and kills that process while the handler runs. */
async function killInTheMiddle({ argument, place }: Scene, path: string, label: string): Promise<void> {
  const victim = await startApp(argument)
  const request = post(victim, path, { key: label, label, slow: 1_500 })
  await killDuring(victim, request, async () => (await place.executions(label)) === 1)
}

interface Retried {
  readonly path: string
  readonly label: string
}

function retryUntil({ apps }: Scene, { path, label }: Retried, fits: (answer: Answer) => boolean): Promise<Answer> {
  return eventually(() => post(apps[0] as App, path, { key: label, label, slow: 1_500 }), fits)
}

function itRollsBack(scene: Scene): void {
  it('rolls an atomic operation back when its process is killed, and the retry runs', async () => {
    const label = 'killed-atomic'
    await killInTheMiddle(scene, '/atomic', label)
    const retry = await retryUntil(scene, { path: '/atomic', label }, ({ status }) => status === 201)
    expect(retry.replayed).toBe(false)
    expect(await scene.place.executions(label)).toBe(2)
    expect(await scene.place.businessRows(label)).toBe(1)
  })
}

function itRecovers(scene: Scene): void {
  it('holds a guarded operation whose process is killed until somebody settles it', async () => {
    const label = 'killed-hold'
    await killInTheMiddle(scene, '/hold', label)
    const inTheLease = await post(scene.apps[0] as App, '/hold', { key: label, label, slow: 1_500 })
    expect(inTheLease).toMatchObject({ status: 409, code: 'in-progress' })
    const held = await retryUntil(scene, { path: '/hold', label }, ({ code }) => code !== 'in-progress')
    expect(held).toMatchObject({ status: 409, code: 'outcome-unknown' })
    expect(held.retryAfter).toBeGreaterThan(0)
    expect(await scene.place.executions(label)).toBe(1)

    const latchkey = createLatchkey({ store: scene.place.store, scope: () => 'acme' })
    const row = { scope: 'acme', operation: 'hold', key: label }
    const verdict = { kind: 'happened', status: 201, json: { settled: true } } as const
    expect(await latchkey.settle(row, verdict, { by: 'a test', reason: 'the process is dead' })).toEqual({
      kind: 'settled',
    })
    const settled = await post(scene.apps[1] as App, '/hold', { key: label, label, slow: 1_500 })
    expect(settled).toMatchObject({ status: 201, replayed: true, text: '{"settled":true}' })
    expect(await scene.place.executions(label)).toBe(1)
    expect((await latchkey.inspect(row)).audit).toMatchObject([{ act: 'settle', by: 'a test' }])
  })

  it('runs a rerun operation again when its process is killed', async () => {
    const label = 'killed-rerun'
    await killInTheMiddle(scene, '/rerun', label)
    const retry = await retryUntil(scene, { path: '/rerun', label }, ({ status }) => status === 201)
    expect(retry.replayed).toBe(false)
    expect(await scene.place.executions(label)).toBe(2)
  })
}
