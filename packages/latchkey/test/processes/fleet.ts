/** Several application processes on one place, and the requests of their clients. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type ForkOptions, forkProgram } from '../../../../test/programs/program.ts'
import type { AppArgument } from './app.ts'

export interface App {
  readonly url: string
  /** kill -9, and wait until it is gone. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export interface Answer {
  readonly status: number
  readonly code: string | undefined
  readonly replayed: boolean
  readonly retryAfter: number
  readonly text: string
}

export async function startApp(argument: AppArgument, options: ForkOptions = {}): Promise<App> {
  return (await forkApp(new URL('./app.ts', import.meta.url), argument, options)).app
}

/** A process with a server. One of the first messages that it sends names its port. */
export async function forkApp(
  script: URL,
  argument: object,
  options: ForkOptions = {},
): Promise<{ readonly app: App; readonly child: ChildProcess }> {
  const child = await forkProgram(script, [JSON.stringify(argument)], options)
  const app = {
    url: `http://127.0.0.1:${await portOf(child)}`,
    kill: () => end(child, 'SIGKILL'),
    stop: () => end(child, 'SIGTERM'),
  }
  return { app, child }
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('message', message => {
      if (typeof message === 'object' && 'port' in message) resolve(Number(message.port))
    })
    child.once('exit', code => reject(new Error(`the server ended with ${code} before it listened`)))
  })
}

export function startFleet(size: number, argument: AppArgument): Promise<App[]> {
  return Promise.all(Array.from({ length: size }, () => startApp(argument)))
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

export async function post(
  app: App,
  path: string,
  asked: { key: string; label: string; slow?: number },
): Promise<Answer> {
  const { key, ...body } = asked
  const response = await fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, 'x-account': 'acme' },
    body: JSON.stringify(body),
  })
  return answerOf(response)
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  const problem = response.headers.get('content-type')?.startsWith('application/problem+json')
    ? JSON.parse(text)
    : undefined
  return {
    status: response.status,
    code: problem?.type?.replace('urn:latchkey:problem:', ''),
    replayed: response.headers.get('idempotent-replayed') === 'true',
    retryAfter: Number(response.headers.get('retry-after') ?? 0),
    text,
  }
}

/** kill -9 in the middle of a request, once the request has come as far as the test waits for. */
export async function killDuring(app: App, request: Promise<unknown>, hasBegun: () => Promise<boolean>): Promise<void> {
  const lost = request.catch(() => undefined)
  await eventually(hasBegun, begun => begun)
  await app.kill()
  await lost
}

/** Asks again until the answer fits: the machine is slow now and then, so a condition is waited for, not a time. */
export async function eventually<T>(ask: () => Promise<T>, fits: (value: T) => boolean): Promise<T> {
  const until = performance.now() + 30_000
  for (;;) {
    const value = await ask()
    if (fits(value)) return value
    if (performance.now() > until) throw new Error(`still ${JSON.stringify(value)} after 30 s`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}
