/** A platform: starts an instance for a request, and ends it at the time limit. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Invocation } from './instance.ts'

export interface Platform {
  readonly databaseUrl: string
  readonly providerUrl: string
  /** What the functions are told. */
  readonly limitMs: number
  /** When the platform ends them. Default: at that limit. */
  readonly endsMs?: number
}

export interface Answered {
  readonly status: number
  readonly replayed?: boolean
  readonly body?: { readonly type?: string; readonly [name: string]: unknown }
}

/** Undefined: the limit came first. */
export async function invoke(platform: Platform, invocation: Invocation): Promise<Answered | undefined> {
  const { databaseUrl, providerUrl, limitMs, endsMs = limitMs } = platform
  const env = { ...process.env, DATABASE_URL: databaseUrl, PROVIDER_URL: providerUrl, LIMIT_MS: String(limitMs) }
  const execArgv = ['--import', 'tsx', '--conditions=latchkey-source']
  const instance = fork(fileURLToPath(new URL('./instance.ts', import.meta.url)), { execArgv, env })
  const exited = once(instance, 'exit')
  try {
    // The limit is of a request, and not of the start of a process.
    await Promise.race([once(instance, 'message'), exited.then(failed)])
    instance.send(invocation)
    const answered = once(instance, 'message').then(([answer]: unknown[]) => answer as Answered) // what instance.ts sends
    return await Promise.race([answered, afterMs(endsMs)])
  } finally {
    instance.kill('SIGKILL')
    await exited
  }
}

function failed(): never {
  throw new Error('the instance ended before its first request')
}

function afterMs(ms: number): Promise<undefined> {
  return new Promise(resolve => setTimeout(resolve, ms, undefined).unref())
}
