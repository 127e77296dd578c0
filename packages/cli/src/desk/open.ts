/** Opens the desk that the settings name. */
import { createLatchkey, silentTelemetry, singleTenant } from 'latchkey'
import type { Context } from '../program/context.ts'
import { openStore } from '../stores/open.ts'
import { hostOf, loadApplication } from './application.ts'
import type { Desk } from './desk.ts'
import { directDesk, personHere } from './direct.ts'
import { remoteDesk } from './remote/desk.ts'

interface OpenedDesk {
  readonly desk: Desk
  close(): Promise<unknown>
}

/** `work` has the desk until it ends. */
export async function withDesk<T>(context: Context, work: (desk: Desk) => Promise<T>): Promise<T> {
  const { desk, close } = await openDesk(context)
  try {
    return await work(desk)
  } finally {
    await close()
  }
}

/** As `withDesk`, for a command that changes something: says in whose name. */
export function withActingDesk<T>(context: Context, work: (desk: Desk) => Promise<T>): Promise<T> {
  return withDesk(context, desk => {
    context.out.talk(desk.as)
    return work(desk)
  })
}

async function openDesk(context: Context): Promise<OpenedDesk> {
  const { server } = context.settings.of
  if (server.value !== undefined) return { desk: remoteDesk(context, server.value), close: async () => {} }
  const application = await loadApplication(context)
  if (application === undefined) return openStoreDesk(context)
  const desk = directDesk(application.latchkey, `through the application, as ${personHere().name}`)
  return { desk, close: async () => application.close?.() }
}

/** Nothing is declared on it: rows of any operation can be listed and settled, with the default retention. */
async function openStoreDesk(context: Context): Promise<OpenedDesk> {
  const { store, address, close } = await openStore(context)
  const { timeoutMs: storeTimeoutMs } = context
  const telemetry = { ...silentTelemetry, report: (message: string) => context.out.detail(message) }
  const latchkey = createLatchkey({ store, scope: singleTenant, maintenance: false, storeTimeoutMs, telemetry })
  const desk = directDesk(hostOf(latchkey), `straight to ${address}, as ${personHere().name}`)
  return { desk, close }
}
