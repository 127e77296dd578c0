/** Starting and stopping the payment provider. */
import { startProcess } from './child-process.ts'
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
  const program = new URL('./provider.ts', import.meta.url)
  const { message, ...started } = await startProcess('payment provider', program, [ledgerPath, ...ports])
  const { port, controlPort } = portsOf(message)
  const address = { url: `http://127.0.0.1:${port}/charges`, controlUrl: `http://127.0.0.1:${controlPort}` }
  return { ...providerClient(address), ...address, ...started }
}

function portsOf(message: unknown): { port: number; controlPort: number } {
  // The only message that provider.ts sends.
  const { port, controlPort } = (message ?? {}) as { port?: unknown; controlPort?: unknown }
  if (typeof port === 'number' && typeof controlPort === 'number') return { port, controlPort }
  throw new Error(`the provider must report its ports (got ${JSON.stringify(message)})`)
}
