/** The engines: real ones, each in a process that may die and comes back as another. */
import type { Answer } from '../../src/engine/answer.ts'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import { createWorkers } from '../../src/workers/workers.ts'
import type { Sent } from './actors.ts'
import { type Asked, declareOperations } from './operations.ts'
import { remoteStore } from './remote-store.ts'
import type { Stage } from './stage.ts'
import type { Process } from './world.ts'

export interface Fleet {
  readonly send: Sent
}

interface Engine {
  readonly process: Process
  readonly execute: (asked: Asked) => Promise<Answer>
}

/** Often enough that a run is short, seldom enough that it is cheap. */
const sweepEveryMs = 15_000
const resumeEveryMs = 7_000
const reapEveryMs = 60_000

export function createFleet(stage: Stage): Fleet {
  const { world, plan, history } = stage
  const { chance } = world
  const engines = new Set<Engine>()
  let started = 0

  function start(): void {
    const process = world.process(`engine ${(started += 1)}`)
    world.tell(() => `${process.name} starts`)
    const engine = startEngine(stage, process, plan.rollingUpgrade && started % 2 === 1 ? 2 : 1)
    engines.add(engine)
    process.onCrash.add(() => {
      engines.delete(engine)
      history.saw('a process died')
      world.at(chance.between(200, 8_000), start)
    })
  }

  for (let n = 0; n < plan.engines; n++) start()

  return {
    send(asked, heard) {
      history.asked(asked)
      const [first, ...others] = engines
      if (first === undefined) return world.at(chance.between(100, 2_000), () => heard('gone'))
      const { process, execute } = chance.pick([first, ...others])
      const gone = () => world.at(chance.between(1, 500), () => heard('gone'))
      process.onCrash.add(gone)
      const hear = (answer: Answer) => {
        process.onCrash.delete(gone)
        world.tell(() => `client hears ${tellAnswer(asked, answer)} from ${process.name}`)
        history.replied(asked, answer)
        heard(answer)
      }
      world.deliver(process, chance.between(1, 50), () => {
        world.tell(() => `${process.name} is asked for ${asked.operation} ${asked.request.identity.id.slice(0, 4)}`)
        const end = stage.runs.begin(process, asked.request.identity.id)
        const answered = execute(asked).finally(end)
        answered.then(hear, error => history.break(`an execution rejected: ${String(error)}`))
      })
    },
  }
}

function startEngine(stage: Stage, process: Process, version: number): Engine {
  const { world, history } = stage
  const latchkey = createLatchkey({
    store: remoteStore(stage, process),
    scope: () => 'shop',
    clock: world.clockOf(process),
    telemetry: { count: (metric, { detail = '' }) => history.saw(`${metric} ${detail}`), observe() {}, report() {} },
  })
  const execute = declareOperations(latchkey, { ...stage, process, version })
  createWorkers(latchkey, {
    sweeper: { everyMs: sweepEveryMs },
    resumer: { everyMs: resumeEveryMs },
    reaper: { everyMs: reapEveryMs },
  }).start()
  return { process, execute }
}

function tellAnswer({ operation }: Asked, answer: Answer): string {
  switch (answer.kind) {
    case 'refused':
      return `${operation}: ${answer.refusal.code}`
    case 'replayed':
      return `${operation}: replayed`
    case 'executed':
      return `${operation}: ${answer.attempt.kind}, stored: ${answer.stored}`
  }
}
