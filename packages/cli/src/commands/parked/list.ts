import { withDesk } from '../../desk/open.ts'
import { filterOf, filterOptions, limitOption, listRows, rowColumns } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'

export const parkedList: CommandSpec = {
  path: 'parked list',
  summary: 'the rows that were given up on, and why',
  options: [...filterOptions, limitOption],
  run: ({ flags, context }) =>
    withDesk(context, async desk => {
      const { items: rows, more } = await listRows(desk, filterOf(flags, 'parked'), flags.count('limit'))
      context.out.rows(rows, rowColumns(context), 'nothing that is parked matches')
      if (more) context.out.talk('there are more: raise --limit, or filter')
      return exits.done
    }),
}
