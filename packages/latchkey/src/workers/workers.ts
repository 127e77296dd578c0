/** All background work of one Latchkey: sweeper, resumer, reconciler, relay, reaper, auditor. Any number of processes may run it at once. */
import { engine } from '../engine/internal.ts'
import { checkOptions } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import { type BeatOptions, type Beats, workerBeats } from './beats.ts'
import { subscription } from './hints.ts'
import { type LoopHealth, workerLoop, type WorkerLoop } from './loop.ts'
import { type WorkerName, workerNames, workersChecks, type WorkersHost, type WorkersOptions } from './options.ts'
import { type WorkerConfigs, workerConfigs } from './worker-configs.ts'

export interface Workers {
  /** Keeps the process alive until `drain` or `stop`. */
  start(): void
  /**
   * No new turns; waits for the running ones, at most `timeoutMs` (default 10 s). At SIGTERM: `drain`, then the Latchkey's `close`, then end the
   * pool. `drained: false`: something is still running; `stop` ends the wait for it.
   */
  drain(options?: { timeoutMs?: number }): Promise<{ drained: boolean }>
  /** No new turns, and no waiting. Work that was running ends by itself, or is recovered as after a crash. */
  stop(): Promise<void>
  /** A hint that there is work for one worker, or for all. */
  wake(worker?: WorkerName): void
  /** By worker; only those that run here. */
  health(): { readonly [Name in WorkerName]?: LoopHealth }
}

export function createWorkers<Tx>(latchkey: WorkersHost<Tx>, options: WorkersOptions = {}): Workers {
  checkOptions('createWorkers', options, workersChecks)
  const configs = workerConfigs(latchkey, options)
  const loops = loopsOf(latchkey, options, configs)
  const all = () => [...loops.values()]
  const wake = (worker?: WorkerName) => {
    for (const [name, loop] of loops) if (worker === undefined || worker === name) loop.wake()
  }
  const hints = [options.hint, settledHint(options, configs)].map(hint =>
    subscription(hint, wake, latchkey[engine].telemetry),
  )
  const endHints = () => {
    for (const hint of hints) hint.end()
  }
  const maintenance = maintenanceOf(latchkey, loops)
  const health = () => Object.fromEntries([...loops].map(([name, loop]) => [name, loop.health()]))
  const beats = beatsOf(latchkey, options, health)
  return {
    start() {
      for (const loop of all()) loop.start()
      for (const hint of hints) hint.begin()
      maintenance.takeOver()
      beats.begin()
    },
    async drain(given) {
      endHints()
      beats.end()
      maintenance.handBack()
      const ends = await Promise.all(all().map(loop => loop.drain(given)))
      return { drained: ends.every(({ drained }) => drained) }
    },
    async stop() {
      endHints()
      beats.end()
      maintenance.handBack()
      await Promise.all(all().map(loop => loop.stop()))
    },
    wake,
    health,
  }
}

/** The workers in `only`; without it, all that have something to do. */
function loopsOf<Tx>(
  latchkey: WorkersHost<Tx>,
  options: WorkersOptions,
  configs: WorkerConfigs,
): ReadonlyMap<WorkerName, WorkerLoop> {
  const { clock, telemetry } = latchkey[engine]
  const loops = new Map<WorkerName, WorkerLoop>()
  for (const name of options.only ?? workerNames) {
    const config = configs[name]
    if (config !== undefined) loops.set(name, workerLoop({ name, clock, telemetry, ...config }))
    else if (options.only !== undefined) throw misconfigured(whyNothing(name))
  }
  return loops
}

/** The reconciler also says how long each operation's quarantine is: operators of other processes are held to it. */
function beatsOf<Tx>(latchkey: WorkersHost<Tx>, { reconciler }: WorkersOptions, health: BeatOptions['health']): Beats {
  const { store, clock } = latchkey[engine]
  const quarantines = () => JSON.stringify({ quarantineMs: reconciler?.use[engine].quarantines() ?? {} })
  const detailOf = (loop: string) => (loop === 'reconciler' ? quarantines() : undefined)
  return workerBeats({ admin: store.admin, clock, health, detailOf })
}

/** Without workers, each instance sweeps and reaps a little itself; these workers take that over. */
function maintenanceOf<Tx>(latchkey: WorkersHost<Tx>, loops: ReadonlyMap<WorkerName, WorkerLoop>) {
  const ends: (() => void)[] = []
  const handBack = () => {
    for (const end of ends.splice(0)) end()
  }
  return {
    takeOver() {
      handBack()
      if (loops.has('sweeper')) ends.push(latchkey[engine].maintenance.leaveTo('sweep'))
      if (loops.has('reaper')) ends.push(latchkey[engine].maintenance.leaveTo('reap'))
      if (loops.has('auditor')) ends.push(latchkey[engine].maintenance.leaveTo('audit'))
    },
    handBack,
  }
}

/** A row that evidence has settled is resumed at once. */
function settledHint({ reconciler }: WorkersOptions, { resumer }: WorkerConfigs): WorkersOptions['hint'] {
  if (reconciler === undefined) return undefined
  return wake =>
    reconciler.use.onSettled(({ id, to }) => {
      if (to !== 'pending') return
      if (id !== undefined) resumer?.settled?.(id)
      wake('resumer')
    })
}

const nothingToDo: { readonly [Name in WorkerName]?: string } = {
  relay: 'without relay: { targets }',
  reconciler: 'without reconciler: { use: createReconciler(latchkey) }',
  auditor: 'without audit of createLatchkey',
}

function whyNothing(name: WorkerName): string {
  const why = nothingToDo[name] ?? 'on a store without steps'
  return `createWorkers: the ${name} has nothing to do ${why}; remove it from only`
}
