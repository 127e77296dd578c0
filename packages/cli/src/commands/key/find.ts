import type { FindWhat } from 'latchkey/admin'
import { found } from '../../desk/answers.ts'
import { withDesk } from '../../desk/open.ts'
import { rowLine, scopeOf } from '../../desk/rows.ts'
import type { Call, CommandSpec } from '../../program/command.ts'
import { exits, notFound } from '../../program/exit.ts'

export const keyFind: CommandSpec = {
  path: 'key find',
  summary: 'finds a row by scope, operation and key (on stdin), or by a reference that its handler recorded',
  options: [
    { flags: '--scope <scope>', summary: 'the tenant; a scope of several parts as a JSON array' },
    { flags: '--operation <name>', summary: 'the operation' },
    { flags: '--reference <text>', summary: 'a provider’s id, an order number: instead of the key' },
  ],
  async run(call) {
    const { context } = call
    const what = await whatOf(call)
    return withDesk(context, async desk => {
      const rows = found(await desk.find(what), 'key find')
      if (rows.length === 0) throw notFound('there is no such row: it was never stored, or its retention is over')
      if (context.out.format === 'text') for (const row of rows) context.out.line(row, rowLine(row))
      else context.out.rows(rows, [])
      return exits.done
    })
  },
}

/** A key must not be in a flag: it would be in the history of the shell. */
async function whatOf({ flags, context }: Call): Promise<FindWhat> {
  const reference = flags.text('reference')
  if (reference !== undefined) return { reference }
  const scope = scopeOf(flags.needed('scope'))
  const operation = flags.needed('operation')
  return { scope, operation, key: await context.terminal.readInput('the key') }
}
