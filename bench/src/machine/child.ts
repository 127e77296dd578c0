/** A program of the benchmark as a child process that answers messages one by one and ends with its parent. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

export interface Child {
  readonly pid: number
  /** What it said when it was ready. */
  readonly ready: unknown
  ask(message: object | string): Promise<unknown>
  stop(): Promise<void>
  /** As a crash does it. */
  kill(): Promise<void>
}

/**
 * While others are measured, a program is idle for longer than it ever is under load. After about ten seconds of that the runtime
 * collects what it can spare, compiled code with it, and the next requests cost three times as much. No subject is measured so.
 */
export const programFlags: readonly string[] = ['--no-memory-reducer']
/** Longer than any measurement; a child that says nothing for so long has hung. */
const answerLimitMs = 300_000

export async function startChild(program: string, args: readonly string[]): Promise<Child> {
  // Without the parent's flags, and as in production: the programs are bundled, and run as a published package does.
  const env = { ...process.env, NODE_ENV: 'production' }
  const child = fork(program, [...args], { execArgv: [...programFlags], env })
  const ready = await nextMessage(child, program)
  const { pid } = child
  if (pid === undefined) throw new Error(`${program} did not start`)
  return {
    pid,
    ready,
    ask(message) {
      const answer = nextMessage(child, program)
      child.send(message)
      return answer
    },
    async stop() {
      if (hasEnded(child)) return
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
    },
    async kill() {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Runs a program that says one thing and ends: its answer. */
export async function askApart<Answer>(program: string, order: object): Promise<Answer> {
  const child = await startChild(program, [JSON.stringify(order)])
  await child.stop()
  // Our own program, and what it says is the one thing that it is for.
  return child.ready as Answer
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function nextMessage(child: ChildProcess, program: string): Promise<unknown> {
  const over = new AbortController()
  const { signal } = over
  const limit = AbortSignal.any([signal, AbortSignal.timeout(answerLimitMs)])
  try {
    const exited = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`${program} ended with code ${code}`)
    })
    const [message]: unknown[] = await Promise.race([once(child, 'message', { signal: limit }), exited])
    return message
  } finally {
    over.abort()
  }
}
