/** The application processes: started, killed, paused and resumed, and restarted whenever one has died. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { AppArgument } from './app/app.ts'
import type { FaultPoints } from './app/fault-points.ts'
import type { Bundle } from '../../test/programs/bundle.ts'
import type { NemesisEvent, History } from './history.ts'
import type { Random } from './random.ts'

export interface Fleet {
  /** The processes that listen and are not paused. */
  awake(): readonly number[]
  /** The process stops itself the next time it reaches such a fault point. */
  stopAt(index: number, points: string): void
  /** kill -9. */
  kill(index: number): void
  /** SIGSTOP, and SIGCONT when the time is over. */
  pause(index: number, ms: number): Promise<void>
  /** From now on no fault points are armed: every process exits in order and is restarted. */
  calm(): Promise<void>
  stop(): Promise<void>
}

export interface FleetOptions {
  readonly programs: Bundle
  readonly arguments: readonly Omit<AppArgument, 'faultPoints'>[]
  readonly random: Random
  readonly log: History<NemesisEvent>
  readonly onChange: (urls: readonly (string | undefined)[]) => void
  /** How long a process that stopped itself stays paused. */
  readonly selfStopMs: () => number
}

interface Slot {
  readonly index: number
  child: ChildProcess | undefined
  url: string | undefined
  /** Paused, or just resumed: what it does now is the purpose of the pause. */
  asleep: boolean
}

/** Long enough for the write that it was about to make to be refused. */
const wakingMs = 2_000

type Ending = { ended: boolean; armed: boolean }

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const slots: Slot[] = options.arguments.map((_, index) => ({
    index,
    child: undefined,
    url: undefined,
    asleep: false,
  }))
  const state: Ending = { ended: false, armed: true }
  const urls = () => slots.map(({ url }) => url)
  await Promise.all(slots.map(slot => keepRunning(slot, { options, state, urls })))
  const child = (index: number) => slots[index]?.child
  return {
    awake: () => slots.filter(({ url, asleep }) => url !== undefined && !asleep).map(({ index }) => index),
    stopAt(index, points) {
      const arm: FaultPoints = { action: 'stop', points, probability: 1, seed: 0 }
      if (child(index)?.connected === true) child(index)?.send({ arm })
    },
    kill: index => void child(index)?.kill('SIGKILL'),
    pause: (index, ms) => pause(slots[index], ms),
    async calm() {
      state.armed = false
      for (const slot of slots) {
        // A process that is still starting has no signal handlers yet, and would die of a signal.
        await until(() => slot.url !== undefined)
        await end(slot.child)
        await until(() => slot.url !== undefined)
      }
    },
    async stop() {
      state.ended = true
      await Promise.all(slots.map(slot => end(slot.child)))
    },
  }
}

interface Keeping {
  readonly options: FleetOptions
  readonly state: Ending
  readonly urls: () => readonly (string | undefined)[]
}

/** Resolves when the process listens for the first time; restarts it for as long as the fleet runs. */
async function keepRunning(slot: Slot, keeping: Keeping): Promise<void> {
  const { options, state, urls } = keeping
  const changed = (url: string | undefined) => {
    slot.url = url
    options.onChange(urls())
  }
  const child = launch(slot.index, keeping)
  slot.child = child
  child.once('exit', (code, signal) => {
    changed(undefined)
    if (state.ended) return
    const ended = code === 0 ? 'app-ended' : 'app-died'
    const kind = signal === 'SIGKILL' ? 'app-killed' : ended
    options.log.write({ type: 'fault', kind, app: slot.index, detail: `code ${code}, ${signal}` })
    void delay(options.random.between(50, 400)).then(() => (state.ended ? undefined : keepRunning(slot, keeping)))
  })
  return new Promise(resolve => {
    child.on('message', (message: { port?: number; stopping?: string }) => {
      if (message.port !== undefined) {
        changed(`http://127.0.0.1:${message.port}`)
        resolve()
      }
      if (message.stopping === undefined) return
      options.log.write({ type: 'fault', kind: 'app-stopped-itself', app: slot.index, detail: message.stopping })
      void pause(slot, options.selfStopMs())
    })
    // A process that dies before it listens is started again by the handler above.
    child.once('exit', () => resolve())
  })
}

function launch(index: number, { options, state }: Keeping): ChildProcess {
  const argument = options.arguments[index]
  if (argument === undefined) throw new Error(`there is no application process ${index}`)
  const faultPoints = state.armed ? drawFaultPoints(options.random) : undefined
  const whole: AppArgument = { ...argument, ...(faultPoints === undefined ? {} : { faultPoints }) }
  const log = openSync(join(argument.directory, `app-${argument.name}.log`), 'a')
  // The last one lives an hour ahead or behind.
  const off = index === options.arguments.length - 1 ? options.random.pick([-3_600_000, 3_600_000]) : 0
  const preload = off === 0 ? [] : ['--import', options.programs.pathOf('clock-off')]
  if (off !== 0) options.log.write({ type: 'fault', kind: 'clock-off', app: index, detail: `${off} ms` })
  const child = fork(options.programs.pathOf('app'), [JSON.stringify(whole)], {
    execArgv: preload,
    env: { ...process.env, TORTURE_CLOCK_MS: String(off) },
    stdio: ['ignore', log, log, 'ipc'],
  })
  closeSync(log)
  return child
}

/** Where a process kills or stops itself: before and after each write and each effect. */
const dangerous = ['^finish:', '^effect:', '^phase:', '^result:', '^intent:', '^relay:', '^(claim|finish|sweep):', '.']

function drawFaultPoints(random: Random): FaultPoints | undefined {
  if (!random.chance(0.75)) return undefined
  return {
    action: random.chance(0.75) ? 'kill' : 'stop',
    points: random.pick(dangerous),
    probability: random.pick([0.005, 0.02, 0.1]),
    seed: random.between(1, 1_000_000),
  }
}

/** Works for a process that has stopped itself, too: stopping it again changes nothing. */
async function pause(slot: Slot | undefined, ms: number): Promise<void> {
  const child = slot?.child
  if (slot === undefined || child === undefined) return
  slot.asleep = true
  child.kill('SIGSTOP')
  await delay(ms)
  child.kill('SIGCONT')
  await delay(wakingMs)
  slot.asleep = false
}

/** In order. A process that does not exit within a minute is killed, which its exit shows. */
async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGCONT')
  child.kill('SIGTERM')
  const limit = setTimeout(() => child.kill('SIGKILL'), 60_000)
  await exited
  clearTimeout(limit)
}

async function until(holds: () => boolean): Promise<void> {
  const endMs = performance.now() + 60_000
  while (!holds()) {
    if (performance.now() > endMs) throw new Error('an application process did not start within a minute')
    await delay(50)
  }
}
