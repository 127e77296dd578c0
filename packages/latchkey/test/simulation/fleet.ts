/** The engines: real ones, each in a process that may die and comes back as another. */
import type { Answer } from '../../src/engine/answer.ts'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import type { WorkerName } from '../../src/workers/options.ts'
import { createWorkers } from '../../src/workers/workers.ts'
import type { Sent } from './actors.ts'
import { type Asked, declareOperations } from './operations.ts'
import { startReconciler } from './engine-reconciler.ts'
import { remoteStore } from './remote-store.ts'
import type { Stage } from './stage.ts'
import type { Deliver, Message } from './webhooks.ts'
import type { Process } from './world.ts'

export interface Fleet {
  readonly send: Sent
}

interface Engine {
  readonly process: Process
  readonly execute: (asked: Asked) => Promise<Answer>
  readonly take: (message: Message) => Promise<number>
}

/** Often enough that a run is short, seldom enough that it is cheap. */
const sweepEveryMs = 20_000
const resumeEveryMs = 8_000
const reapEveryMs = 60_000
const reconcileEveryMs = 15_000

export function createFleet(stage: Stage): Fleet {
  const { world, plan, history } = stage
  const { chance } = world
  const engines = new Set<Engine>()
  let started = 0

  /** The process that replaces a dead one does the same as it did. */
  function start(place: number): void {
    const process = world.process(`engine ${(started += 1)}`)
    world.trace(() => `${process.name} starts`)
    const version = plan.rollingUpgrade && started % 2 === 1 ? 2 : 1
    const engine = startEngine(stage, process, { version, workers: workersIn(stage, place) })
    engines.add(engine)
    process.onCrash.add(() => {
      engines.delete(engine)
      history.saw('a process died')
      world.at(chance.between(200, 8_000), () => start(place))
    })
  }

  for (let n = 0; n < plan.engines; n++) start(n)
  stage.webhooks.connect(webhookDelivery(stage, engines))

  return {
    send(asked, answered) {
      history.asked(asked)
      const [first, ...others] = engines
      if (first === undefined) return world.at(chance.between(100, 2_000), () => answered('gone'))
      const { process, execute } = chance.pick([first, ...others])
      const gone = () => world.at(chance.between(1, 500), () => answered('gone'))
      process.onCrash.add(gone)
      const reply = (answer: Answer) => {
        process.onCrash.delete(gone)
        world.trace(() => `client gets ${describeAnswer(asked, answer)} from ${process.name}`)
        history.replied(asked, answer)
        answered(answer)
      }
      world.deliver(process, chance.between(1, 50), () => {
        world.trace(() => `${process.name} is asked for ${asked.operation} ${asked.request.identity.id.slice(0, 4)}`)
        const end = stage.runs.begin(process, asked.request.identity.id)
        const executed = execute(asked).finally(end)
        executed.then(reply, error => history.break(`an execution rejected: ${String(error)}`))
      })
    },
  }
}

/** Two processes do background work, so that they get into each other's way; a third one only serves. */
function workersIn({ plan }: Stage, place: number): readonly WorkerName[] {
  if (place > 1) return []
  const asked: readonly WorkerName[] = plan.lookUps || plan.webhooks ? ['reconciler'] : []
  return place === 0 ? ['sweeper', 'resumer', 'reaper', ...asked] : ['sweeper', 'resumer', ...asked]
}

interface EngineOptions {
  readonly version: number
  readonly workers: readonly WorkerName[]
}

function startEngine(stage: Stage, process: Process, { version, workers }: EngineOptions): Engine {
  const { world, history } = stage
  const latchkey = createLatchkey({
    store: remoteStore(stage, process),
    scope: () => 'shop',
    // Workers are placed on purpose, and one process does none of their work.
    maintenance: false,
    clock: world.clockOf(process),
    telemetry: { count: (metric, attributes) => history.counted(metric, attributes), observe() {}, report() {} },
  })
  const shop = { ...stage, process, version }
  const offered = declareOperations(latchkey, shop)
  const { reconcile, take } = startReconciler(latchkey, offered, shop)
  createWorkers(latchkey, {
    only: workers,
    reconciler: { use: reconcile, everyMs: reconcileEveryMs },
    sweeper: { everyMs: sweepEveryMs },
    resumer: { everyMs: resumeEveryMs },
    reaper: { everyMs: reapEveryMs },
  }).start()
  return { process, execute: offered.execute, take }
}

/** A message to any engine that lives; it may die with it. */
function webhookDelivery({ world, history }: Stage, engines: ReadonlySet<Engine>): Deliver {
  const { chance } = world
  return (message, answered) => {
    const [first, ...others] = engines
    if (first === undefined || chance.happens(world.faults.lose)) return
    const { process, take } = chance.pick([first, ...others])
    world.deliver(process, chance.between(1, 50), () => {
      const reply = (status: number) => {
        world.trace(() => `message ${message.id} gets ${status} from ${process.name}`)
        answered(status)
      }
      take(message).then(reply, error => history.break(`a webhook rejected: ${String(error)}`))
    })
  }
}

function describeAnswer({ operation }: Asked, answer: Answer): string {
  switch (answer.kind) {
    case 'refused':
      return `${operation}: ${answer.refusal.code}`
    case 'replayed':
      return `${operation}: replayed`
    case 'accepted':
      return `${operation}: accepted`
    case 'executed':
      return `${operation}: ${answer.attempt.kind}, stored: ${answer.stored}`
  }
}
