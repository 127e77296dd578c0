/** All background work of one Latchkey: swept, resumed, reconciled, relayed, reaped. Any number of processes may run it at once. */
import { engine } from '../engine/internal.ts'
import { checkOptions } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import { subscription } from './hints.ts'
import { type LoopHealth, workerLoop, type WorkerLoop } from './loop.ts'
import { type WorkerName, workerNames, workersChecks, type WorkersHost, type WorkersOptions } from './options.ts'
import { type Shapes, shapes } from './worker-configs.ts'

export interface Workers {
  /** Keeps the process alive until `drain` or `stop`. */
  start(): void
  /**
   * No new turns; waits for those under way, at most `timeoutMs` (default 10 s). At SIGTERM: `drain`, then the Latchkey's
   * `close`, then end the pool. `drained: false`: something is still running; `stop` ends the wait for it.
   */
  drain(options?: { timeoutMs?: number }): Promise<{ drained: boolean }>
  /** No new turns, waits for nothing. What was under way ends by itself or is recovered like after a crash. */
  stop(): Promise<void>
  /** A hint that there is work for one worker, or for all. */
  wake(worker?: WorkerName): void
  /** By worker; only those that run here. */
  health(): { readonly [Name in WorkerName]?: LoopHealth }
}

export function createWorkers<Tx>(latchkey: WorkersHost<Tx>, options: WorkersOptions = {}): Workers {
  checkOptions('createWorkers', options, workersChecks)
  const found = shapes(latchkey, options)
  const loops = loopsOf(latchkey, options, found)
  const all = () => [...loops.values()]
  const wake = (worker?: WorkerName) => {
    for (const [name, loop] of loops) if (worker === undefined || worker === name) loop.wake()
  }
  const hints = [options.hint, settledHint(options, found)].map(hint =>
    subscription(hint, wake, latchkey[engine].telemetry),
  )
  const endHints = () => {
    for (const hint of hints) hint.end()
  }
  const care = maintained(latchkey, loops)
  return {
    start() {
      for (const loop of all()) loop.start()
      for (const hint of hints) hint.begin()
      care.take()
    },
    async drain(given) {
      endHints()
      care.giveBack()
      const ends = await Promise.all(all().map(loop => loop.drain(given)))
      return { drained: ends.every(({ drained }) => drained) }
    },
    async stop() {
      endHints()
      care.giveBack()
      await Promise.all(all().map(loop => loop.stop()))
    },
    wake,
    health: () => Object.fromEntries([...loops].map(([name, loop]) => [name, loop.health()])),
  }
}

/** Those that are asked for; unless some are, all that have something to do. */
function loopsOf<Tx>(
  latchkey: WorkersHost<Tx>,
  options: WorkersOptions,
  found: Shapes,
): ReadonlyMap<WorkerName, WorkerLoop> {
  const { clock, telemetry } = latchkey[engine]
  const loops = new Map<WorkerName, WorkerLoop>()
  for (const name of options.only ?? workerNames) {
    const shape = found[name]
    if (shape !== undefined) loops.set(name, workerLoop({ name, clock, telemetry, ...shape }))
    else if (options.only !== undefined) throw misconfigured(whyNothing(name))
  }
  return loops
}

/** What the instance itself does a little of, where nobody does it all. */
function maintained<Tx>(latchkey: WorkersHost<Tx>, loops: ReadonlyMap<WorkerName, WorkerLoop>) {
  const ends: (() => void)[] = []
  const giveBack = () => {
    for (const end of ends.splice(0)) end()
  }
  return {
    take() {
      giveBack()
      if (loops.has('sweeper')) ends.push(latchkey[engine].maintenance.leaveTo('sweep'))
      if (loops.has('reaper')) ends.push(latchkey[engine].maintenance.leaveTo('reap'))
    },
    giveBack,
  }
}

/** What evidence has settled goes on at once. */
function settledHint({ reconcile }: WorkersOptions, { resumer }: Shapes): WorkersOptions['hint'] {
  if (reconcile === undefined) return undefined
  return wake =>
    reconcile.onSettled(({ id, to }) => {
      if (to !== 'pending') return
      if (id !== undefined) resumer?.settled?.(id)
      wake('resumer')
    })
}

const nothingToDo: { readonly [Name in WorkerName]?: string } = {
  relay: 'without targets: name where messages go',
  reconciler: 'without reconcile: createReconciler(latchkey)',
}

function whyNothing(name: WorkerName): string {
  const why = nothingToDo[name] ?? 'on a store without transactions'
  return `createWorkers: the ${name} has nothing to do ${why}, or leave it out of only`
}
