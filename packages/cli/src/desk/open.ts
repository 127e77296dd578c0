/** Opens the desk that the settings name. */
import type { Context } from '../program/context.ts'
import { CliError, exits } from '../program/exit.ts'
import type { Desk } from './desk.ts'
import { directDesk } from './direct.ts'
import { openHost } from './host.ts'
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
  return withDesk(context, async desk => {
    // Before a person is asked anything, and before a plan is shown.
    if (desk.noActs !== undefined) throw new CliError(exits.usage, 'not-supported', desk.noActs)
    context.out.talk(desk.as)
    return work(desk)
  })
}

async function openDesk(context: Context): Promise<OpenedDesk> {
  const { server } = context.settings.of
  if (server.value !== undefined) return { desk: remoteDesk(context, server.value), close: async () => {} }
  const { latchkey, as, close } = await openHost(context)
  return { desk: directDesk(latchkey, as), close }
}
