/** Runs every check, one after another: they look at one database, and their lines are read in order. */
import { failureOf } from '../program/failure.ts'
import type { Context } from '../program/context.ts'
import { exits } from '../program/exit.ts'
import { withStore } from '../stores/open.ts'
import type { Check, Finding } from './finding.ts'

export interface Examined extends Finding {
  readonly check: string
}

export function examine(context: Context): Promise<readonly Examined[]> {
  return withStore(context, async opened => {
    const found: Examined[] = []
    for (const check of opened.checks) {
      context.out.detail(`looking at ${check.name}`)
      for (const finding of await looked(check)) found.push({ check: check.name, ...finding })
    }
    return found
  })
}

/** A database that does not answer ends the program; whatever else goes wrong is about this check. */
async function looked(check: Check): Promise<readonly Finding[]> {
  try {
    return await check.look()
  } catch (error) {
    const { exit, message } = failureOf(error)
    if (exit === exits.unreachable) throw error
    return [{ verdict: 'FAIL', text: `could not be looked at: ${message}` }]
  }
}
