/** Starting, asking and stopping the payment provider. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { classifyNetworkFailure, notExecuted, outcomeUnknown } from 'latchkey'
import type { Charge, Fault, ProviderState } from './charge.ts'

export interface Provider {
  readonly pid: number
  readonly url: string
  /** Where its faults and its idempotency are switched; see provider.ts. */
  readonly controlUrl: string
  charge(asked: Omit<Charge, 'id'>, signal: AbortSignal): Promise<Charge>
  charges(): Promise<readonly Charge[]>
  /** null: as if nothing could go wrong. */
  setFault(fault: Fault | null): Promise<ProviderState>
  setIdempotency(on: boolean): Promise<ProviderState>
  /** Settles when its process has ended, for whatever reason. */
  readonly exited: Promise<unknown>
  stop(): Promise<void>
}

/** A provider that takes longer is treated as silent; the lease is longer. */
const chargeTimeoutMs = 10_000

export async function startProvider(ledgerPath: string): Promise<Provider> {
  const child = fork(fileURLToPath(new URL('./provider.ts', import.meta.url)), [ledgerPath], {
    execArgv: ['--import', 'tsx'],
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the payment provider did not start: it ended with code ${code}`)
  })
  const [message]: unknown[] = await Promise.race([once(child, 'message'), ended])
  const { port, controlPort } = portsOf(message)
  const url = `http://127.0.0.1:${port}/charges`
  const controlUrl = `http://127.0.0.1:${controlPort}`
  return {
    pid: child.pid ?? 0,
    url,
    controlUrl,
    async charge({ key, ...asked }, signal) {
      const response = await askOnce(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(asked),
        signal: AbortSignal.any([signal, AbortSignal.timeout(chargeTimeoutMs)]),
      })
      if (response.status === 201) return (await response.json()) as Charge
      if (response.status === 402) throw notExecuted(new Error('the provider declined the charge'))
      throw outcomeUnknown(new Error(`the provider answered ${response.status}`))
    },
    async charges() {
      const response = await fetch(url)
      return (await response.json()) as Charge[]
    },
    setFault: fault => put(`${controlUrl}/fault`, fault),
    setIdempotency: on => put(`${controlUrl}/idempotency`, on),
    exited: once(child, 'exit'),
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

async function put(url: string, value: unknown): Promise<ProviderState> {
  const response = await fetch(url, { method: 'PUT', body: JSON.stringify(value) })
  if (!response.ok) throw new Error(`the provider refused ${JSON.stringify(value)}: ${await response.text()}`)
  return (await response.json()) as ProviderState
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

function portsOf(message: unknown): { port: number; controlPort: number } {
  // The only message that provider.ts sends.
  const { port, controlPort } = (message ?? {}) as { port?: unknown; controlPort?: unknown }
  if (typeof port === 'number' && typeof controlPort === 'number') return { port, controlPort }
  throw new Error(`the provider did not tell its ports, but ${JSON.stringify(message)}`)
}
