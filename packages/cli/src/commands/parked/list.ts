import { withDesk } from '../../desk/open.ts'
import { cutText } from '../../desk/pages.ts'
import { filterOf, filterOptions, limitOption, listRows, rowColumns } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'

export const parkedList: CommandSpec = {
  path: 'parked list',
  summary: 'the rows that were given up on, and why',
  options: [...filterOptions, limitOption],
  run: ({ flags, context }) =>
    withDesk(context, async desk => {
      const listed = await listRows(desk, filterOf(flags, 'parked'), flags.count('limit'))
      const cut = cutText(listed)
      context.out.rows(listed.items, rowColumns(context), listed.partial ? undefined : 'nothing that is parked matches')
      if (cut !== undefined) context.out.talk(cut)
      return exits.done
    }),
}
