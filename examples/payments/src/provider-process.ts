/** Starting and stopping the payment provider. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type ProviderAddress, type ProviderClient, providerClient } from './provider-client.ts'

export interface Provider extends ProviderClient, ProviderAddress {
  /** Absent: another program started it. */
  readonly pid: number | undefined
  /** Settles when its process has exited, for any reason. */
  readonly exited: Promise<unknown>
  stop(): Promise<void>
}

/** `at`: where it listened before. Default: ports that the kernel chooses. */
export async function startProvider(ledgerPath: string, at?: ProviderAddress): Promise<Provider> {
  const ports = at === undefined ? [] : [new URL(at.url).port, new URL(at.controlUrl).port]
  const child = fork(fileURLToPath(new URL('./provider.ts', import.meta.url)), [ledgerPath, ...ports], {
    execArgv: ['--import', 'tsx'],
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the payment provider did not start: it exited with code ${code}`)
  })
  const [message]: unknown[] = await Promise.race([once(child, 'message'), ended])
  const { port, controlPort } = portsOf(message)
  const address = { url: `http://127.0.0.1:${port}/charges`, controlUrl: `http://127.0.0.1:${controlPort}` }
  return {
    ...providerClient(address),
    ...address,
    pid: child.pid,
    exited: once(child, 'exit'),
    stop: () => stop(child),
  }
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
  throw new Error(`the provider must report its ports (got ${JSON.stringify(message)})`)
}
