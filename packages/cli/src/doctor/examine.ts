/** Runs every check, one after another: they look at one database, and their lines are read in order. */
import { loadApplication } from '../desk/application.ts'
import { failureOf } from '../program/failure.ts'
import type { Context } from '../program/context.ts'
import { exits } from '../program/exit.ts'
import { withStore } from '../stores/open.ts'
import { consoleCheck } from './console.ts'
import { type Check, type Finding, skip } from './finding.ts'
import { operationsCheck } from './operations.ts'
import { workersCheck } from './workers.ts'

export interface Examined extends Finding {
  readonly check: string
}

export function examine(context: Context): Promise<readonly Examined[]> {
  return withStore(context, async opened => {
    const found: Examined[] = []
    const application = await loadApplication(context)
    const store = () => opened.store
    const checks = [...opened.checks, workersCheck(store), operationsCheck(store, application), consoleCheck(context)]
    for (const check of checks) {
      context.out.detail(`looking at ${check.name}`)
      const isUnfit = found.some(({ check: name, verdict }) => name === 'store' && verdict === 'FAIL')
      for (const finding of await looked(check, isUnfit)) found.push({ check: check.name, ...finding })
    }
    await application?.close?.()
    return found
  })
}

/** A database that does not answer ends the program; whatever else goes wrong is about this check, or follows from a store that is not fit. */
async function looked(check: Check, isUnfit: boolean): Promise<readonly Finding[]> {
  try {
    return await check.look()
  } catch (error) {
    const { exit, code, message } = failureOf(error)
    if (isUnfit && code !== 'store-unavailable') return skip('looked at when the store is fit for use')
    if (exit === exits.unreachable) throw error
    return [{ verdict: 'FAIL', text: `could not be looked at: ${message}` }]
  }
}
