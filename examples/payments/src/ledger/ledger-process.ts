/** Starts the ledger, and restarts it when it dies, at the same address. */
import { startProcess } from '../child-process.ts'
import { supervise, type Supervised } from '../supervise.ts'
import type { LedgerOrder } from './ledger.ts'

export interface Ledger {
  readonly pid: number | undefined
  /** Switches its fault; see ledger.ts. */
  readonly controlUrl: string
  stop(): Promise<void>
}

/** Shorter than the broker waits for its acknowledgement. */
const restartAfterMs = 1_000

export async function superviseLedger(order: Omit<LedgerOrder, 'port'>, log: (line: string) => void): Promise<Ledger> {
  const { current, stop } = await supervise<Supervised & { port: number }>({
    name: 'ledger',
    restartAfterMs,
    log,
    async start(last) {
      const argument: LedgerOrder = { ...order, port: last?.port ?? 0 }
      const program = new URL('./ledger.ts', import.meta.url)
      const { message, ...started } = await startProcess('ledger', program, [JSON.stringify(argument)])
      return { ...started, port: portOf(message) }
    },
  })
  return {
    get pid() {
      return current().pid
    },
    get controlUrl() {
      return `http://127.0.0.1:${current().port}`
    },
    stop,
  }
}

function portOf(message: unknown): number {
  // The only message that ledger.ts sends.
  const { port } = (message ?? {}) as { port?: unknown }
  if (typeof port === 'number') return port
  throw new Error(`the ledger must report its port (got ${JSON.stringify(message)})`)
}
