/** The workers: those of the application, or without one those that need no code. */
import { createLatchkey, singleTenant } from 'latchkey'
import { createWorkers, type WorkerName, type Workers } from 'latchkey/workers'
import type { Context } from '../program/context.ts'
import { usage } from '../program/exit.ts'
import { openStore } from '../stores/open.ts'
import { loadApplication } from './application.ts'

export interface OpenedWorkers {
  readonly workers: Workers
  close(): Promise<unknown>
}

/** They move and delete rows by what the rows say themselves. */
const codeless: readonly WorkerName[] = ['sweeper', 'reaper']

export async function openWorkers(context: Context, only: readonly WorkerName[] | undefined): Promise<OpenedWorkers> {
  if (context.settings.of.server.value !== undefined) throw usage('work needs the store itself: leave --server out')
  const application = await loadApplication(context)
  if (application === undefined) return openCodeless(context, only)
  const chosen = only === undefined ? {} : { only }
  const { latchkey, reconciler, workers } = application
  const opened =
    workers?.(chosen) ??
    createWorkers(latchkey, { ...chosen, ...(reconciler === undefined ? {} : { reconciler: { use: reconciler } }) })
  return { workers: opened, close: async () => application.close?.() }
}

async function openCodeless(context: Context, only: readonly WorkerName[] = codeless): Promise<OpenedWorkers> {
  const strange = only.find(name => !codeless.includes(name))
  if (strange !== undefined) {
    throw usage(
      `the ${strange} needs your code: give the configuration an application, or run createWorkers in your application. Without one, ${codeless.join(' and ')} can run`,
    )
  }
  const { store, close } = await openStore(context)
  const report = (message: string) => context.out.talk(message)
  const telemetry = { count: () => {}, observe: () => {}, report }
  const latchkey = createLatchkey({ store, scope: singleTenant, maintenance: false, telemetry })
  return { workers: createWorkers(latchkey, { only }), close }
}
