/** Starting, asking and stopping the payment provider. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { classifyNetworkFailure, notExecuted, outcomeUnknown } from 'latchkey'
import type { Charge } from './charge.ts'

export interface Provider {
  readonly pid: number
  charge(asked: Omit<Charge, 'id'>, signal: AbortSignal): Promise<Charge>
  charges(): Promise<readonly Charge[]>
  stop(): Promise<void>
}

/** A provider that takes longer is treated as silent; the lease is longer. */
const chargeTimeoutMs = 10_000

export async function startProvider(ledgerPath: string): Promise<Provider> {
  const child = fork(fileURLToPath(new URL('./provider.ts', import.meta.url)), [ledgerPath])
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the payment provider did not start: it ended with code ${code}`)
  })
  const [message]: unknown[] = await Promise.race([once(child, 'message'), ended])
  const url = `http://127.0.0.1:${portOf(message)}/charges`
  return {
    pid: child.pid ?? 0,
    async charge({ key, account, amount }, signal) {
      const response = await askOnce(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify({ account, amount }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(chargeTimeoutMs)]),
      })
      if (response.status === 201) return (await response.json()) as Charge
      throw outcomeUnknown(new Error(`the provider answered ${response.status}`))
    },
    async charges() {
      const response = await fetch(url)
      return (await response.json()) as Charge[]
    },
    stop: () => stop(child),
  }
}

/** A request that never left is proven not to have charged; anything else may have. */
async function askOnce(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, request)
  } catch (error) {
    throw classifyNetworkFailure(error) === 'never-left' ? notExecuted(error) : outcomeUnknown(error)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

function portOf(message: unknown): number {
  if (typeof message === 'object' && message !== null && 'port' in message && typeof message.port === 'number')
    return message.port
  throw new Error(`the provider did not tell its port, but ${JSON.stringify(message)}`)
}
