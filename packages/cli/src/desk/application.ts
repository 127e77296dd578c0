/** The application of the configuration, where this call uses it. */
import type { AdminHost } from 'latchkey/admin'
import type { WorkersHost } from 'latchkey/workers'
import type { Application } from '../config/config.ts'
import type { Context } from '../program/context.ts'
import { usage } from '../program/exit.ts'

/** What operators and workers need of a Latchkey, whatever its transactions are. */
export type Host = AdminHost<never> & WorkersHost<never>

export interface LoadedApplication extends Omit<Application, 'latchkey'> {
  readonly latchkey: Host
}

/** Undefined: there is none, or this call goes straight to a store. */
export async function loadApplication(context: Context): Promise<LoadedApplication | undefined> {
  const { application: open, files } = context.settings
  if (open === undefined || !usesApplication(context)) return undefined
  const { latchkey, ...application } = (await open()) ?? {}
  if (typeof latchkey?.identify === 'function') return { ...application, latchkey: hostOf(latchkey) }
  throw usage(`application of ${files.join(', ')} must return { latchkey }: what createLatchkey returned`)
}

/** Whatever `createLatchkey` returns is one; `createAdmin` and `createWorkers` check it. */
export function hostOf(latchkey: Application['latchkey']): Host {
  return latchkey as unknown as Host
}

/** Where a store is named for this call, the application might be connected to another one. */
function usesApplication({ settings, flags }: Context): boolean {
  const { origin } = settings.of.store
  const isNamedHere = origin.startsWith('flag') || origin.startsWith('LATCHKEY_') || origin.includes(', profile ')
  return flags.has('application') && !isNamedHere
}
