/** The call trace of one request: every call of a library function, with its caller, across awaits. */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Frame {
  readonly number: number
  readonly caller: Frame | undefined
}

export interface Trace {
  readonly frames: readonly Frame[]
  /** What led to the first statement that the request sent to the database, outermost first. */
  readonly path: readonly Frame[]
}

const current = new AsyncLocalStorage<Frame>()
let frames: Frame[] | undefined
let path: readonly Frame[] | undefined

/** Every function of the library is wrapped in a call of this; see instrument.ts. */
export function traced<Result>(number: number, run: () => Result): Result {
  const frame = { number, caller: current.getStore() }
  frames?.push(frame)
  return current.run(frame, run)
}

/** To be called when a statement is sent. */
export function statementSent(): void {
  if (frames === undefined || path !== undefined) return
  path = callersOf(current.getStore())
}

/** Without what the process does of itself meanwhile: a frame counts if the request's first call led to it. */
export async function traceOf(request: () => Promise<unknown>): Promise<Trace> {
  frames = []
  path = undefined
  await request()
  const [first] = path ?? []
  const seen = frames.filter(frame => callersOf(frame)[0] === first)
  frames = undefined
  return { frames: seen, path: path ?? [] }
}

function callersOf(frame: Frame | undefined): readonly Frame[] {
  const callers: Frame[] = []
  for (let each = frame; each !== undefined; each = each.caller) callers.unshift(each)
  return callers
}
