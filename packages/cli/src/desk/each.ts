/** The same act on several things that were named one by one: a result for each, whatever becomes of the others. */
import type { Context } from '../program/context.ts'
import { confirmPlan } from '../terminal/confirm.ts'
import { CliError, type Exit, exits } from '../program/exit.ts'
import { failureOf } from '../program/failure.ts'

/** `act`: for people, such as `resume`. */
export interface Named {
  readonly act: string
  readonly ids: readonly string[]
}

/** One that fails ends with its own code. Of several, 1 if any failed. */
export async function forEach(
  context: Context,
  { act, ids }: Named,
  run: (id: string) => Promise<{ readonly auditId: string }>,
): Promise<Exit> {
  const { out, flags } = context
  if (flags.has('dry-run')) {
    await confirmPlan(context, { act, matched: ids.length, sample: ids })
    return exits.done
  }
  const [only] = ids
  if (ids.length === 1 && only !== undefined) {
    const { auditId } = await run(only)
    out.line({ id: only, result: 'done', auditId }, `${only}  done  (audit ${auditId})`)
    return exits.done
  }
  const failed = await eachOf(context, ids, run)
  out.talk(`${ids.length - failed} done, ${failed} failed`)
  return failed === 0 ? exits.done : exits.no
}

async function eachOf(
  { out, signal }: Context,
  ids: readonly string[],
  run: (id: string) => Promise<{ readonly auditId: string }>,
): Promise<number> {
  let failed = 0
  for (const [index, id] of ids.entries()) {
    if (signal.aborted) throw interrupted(`${index} of ${ids.length} were tried, ${index - failed} done`)
    try {
      const { auditId } = await run(id)
      out.line({ id, result: 'done', auditId }, `${id}  done`)
    } catch (error) {
      const { code, message, exit } = failureOf(error)
      // Nothing after it would fare better.
      if (exit === exits.unreachable || exit === exits.interrupted) throw error
      failed += 1
      out.line({ id, result: code, message }, `${id}  ${code}: ${message}`)
    }
    out.progress.show(index + 1, ids.length, 'done')
  }
  out.progress.end()
  return failed
}

export function interrupted(what: string): CliError {
  return new CliError(exits.interrupted, 'interrupted', `interrupted: ${what}`)
}
