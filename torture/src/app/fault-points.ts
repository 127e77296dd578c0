/** Fault points: by chance, the process kills or stops itself at one of the places that Latchkey names. */
import type { AppEvent, History } from '../history.ts'
import { randomFrom } from '../random.ts'

export interface FaultPoints {
  readonly action: 'kill' | 'stop'
  /** A regular expression over the names of the points. */
  readonly points: string
  /** At each hit. */
  readonly probability: number
  readonly seed: number
}

/** Points that are recorded when they are passed, because they show that a hard case was met. */
const told = new Set(['read after commit:before'])

export function armFaultPoints(history: History<AppEvent>, faultPoints: FaultPoints | undefined): void {
  const random = randomFrom(faultPoints?.seed ?? 0, 'fault-points')
  let points = new RegExp(faultPoints?.points ?? '^$')
  let armed = faultPoints
  const pass = (name: string) => {
    if (told.has(name)) history.write({ type: 'fault-point', name, detail: 'passed' })
    if (armed === undefined || !points.test(name) || !random.chance(armed.probability)) return
    const { action } = armed
    // Once is enough: a process that stops at every second step does nothing else.
    armed = undefined
    history.write({ type: 'fault-point', name, detail: action })
    if (action === 'kill') process.kill(process.pid, 'SIGKILL')
    // The parent resumes this process. The message is in the pipe before the signal takes effect.
    process.send?.({ stopping: name })
    process.kill(process.pid, 'SIGSTOP')
  }
  Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), pass)
  // The parent may name another place at any time.
  process.on('message', (message: { arm?: FaultPoints }) => {
    armed = message.arm ?? armed
    points = new RegExp(armed?.points ?? '^$')
  })
}
