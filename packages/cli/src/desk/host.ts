/** What operators act through: the application of the configuration, or the store alone. */
import { createLatchkey, silentTelemetry, singleTenant } from 'latchkey'
import type { Context } from '../program/context.ts'
import { openStore } from '../stores/open.ts'
import { type Host, hostOf, loadApplication } from './application.ts'
import { personHere } from './direct.ts'

export interface OpenedHost {
  readonly latchkey: Host
  /** For people: whose name the acts carry, and where they are done. */
  readonly as: string
  close(): Promise<unknown>
}

export async function openHost(context: Context): Promise<OpenedHost> {
  const application = await loadApplication(context)
  if (application === undefined) return openStoreHost(context)
  const { latchkey } = application
  return {
    latchkey,
    as: `through the application, as ${personHere().name}`,
    close: async () => application.close?.(),
  }
}

/** Nothing is declared on it: rows of any operation can be listed and settled, with the default retention. */
async function openStoreHost(context: Context): Promise<OpenedHost> {
  const { store, address, close } = await openStore(context)
  const { timeoutMs: storeTimeoutMs } = context
  const telemetry = { ...silentTelemetry, report: (message: string) => context.out.detail(message) }
  const latchkey = createLatchkey({ store, scope: singleTenant, maintenance: false, storeTimeoutMs, telemetry })
  return { latchkey: hostOf(latchkey), as: `straight to ${address}, as ${personHere().name}`, close }
}
