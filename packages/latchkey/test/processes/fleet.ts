/** Several application processes on one place, and the requests of their clients. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
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

export async function startApp(argument: AppArgument, { execArgv = [] }: { execArgv?: string[] } = {}): Promise<App> {
  const tsx = ['--import', 'tsx', '--conditions=latchkey-source']
  const child = fork(fileURLToPath(new URL('./app.ts', import.meta.url)), [JSON.stringify(argument)], {
    execArgv: [...tsx, ...execArgv],
  })
  const [message]: unknown[] = await once(child, 'message')
  // The only message that app.ts sends.
  const { port } = message as { port: number }
  return { url: `http://127.0.0.1:${port}`, kill: () => end(child, 'SIGKILL'), stop: () => end(child, 'SIGTERM') }
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
