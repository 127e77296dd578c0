/** What one client makes of a loss or a refusal. */
import { randomUUID } from 'node:crypto'
import type { Context } from 'hono'
import type { GuardedOptions, Store } from 'latchkey'
import type { Client } from './clients.ts'
import { type Loss, type LossyProxy, startLossyProxy } from './lossy-proxy.ts'
import { startApp } from './server.ts'

export interface Trial {
  readonly setUp: boolean
  readonly losses?: readonly Loss[]
  readonly options?: Partial<GuardedOptions<Context>>
  handle?(c: Context, run: number): Response | Promise<Response>
  /** Runs beside the call; the trial ends when both have. */
  during?(proxy: LossyProxy, settled: Promise<unknown>): Promise<unknown>
}

export interface Measured {
  /** `ok`, the status that the client ended with, or `no answer`. */
  readonly end: 'ok' | 'no answer' | number
  /** As the client sent them. */
  readonly requests: number
  /** How often the handler ran. */
  readonly runs: number
  readonly ms: number
  readonly error: unknown
}

export async function measure(client: Client, store: Store, trial: Trial): Promise<Measured> {
  const { setUp, losses = [], options = {}, handle = created, during } = trial
  const app = await startApp({
    store,
    // Each trial has rows of its own.
    operation: `trial.${randomUUID()}`,
    options: { onFailure: 'rerun', ...(client.key === undefined ? {} : { key: client.key }), ...options },
    http: client.http ?? {},
    handle,
  })
  const proxy = await startLossyProxy(app.url, losses)
  const startedMs = performance.now()
  const settled = ended(client.send({ url: proxy.url, key: randomUUID(), setUp }))
  await during?.(proxy, settled)
  const { end, error } = await settled
  const ms = performance.now() - startedMs
  const { requests } = proxy
  await proxy.close()
  return { end, requests, runs: await app.close(), ms, error }
}

/** An answer that every client of the suite understands. */
export function created(c: Context): Response {
  return c.json({ id: 'order_1', object: 'order', ScheduleArn: 'arn:aws:scheduler:eu-central-1:1:schedule/n' }, 201)
}

async function ended(call: Promise<unknown>): Promise<Pick<Measured, 'end' | 'error'>> {
  try {
    await call
    return { end: 'ok', error: undefined }
  } catch (error) {
    return { end: statusOf(error) ?? 'no answer', error }
  }
}

/** Under each name that a client has for it. */
function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  for (const name of ['statusCode', 'status', 'httpStatusCode']) {
    const status: unknown = Reflect.get(error, name)
    if (typeof status === 'number') return status
  }
  return statusOf(Reflect.get(error, 'response')) ?? statusOf(Reflect.get(error, '$metadata'))
}
