import { readKey, reasonOf, reasonOption, settled } from '../../desk/act.ts'
import { runBulk } from '../../desk/bulk.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import { filterOf, filterOptions } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { usage } from '../../program/exit.ts'
import { mustBeAskable } from '../../terminal/confirm.ts'

export const unknownLookUp: CommandSpec = {
  path: 'unknown look-up',
  summary: 'has the provider asked now, by the next turn of a reconciler',
  args: '[id...]',
  options: [
    { flags: '--all-matching', summary: 'every row that the filters match, at most 1,000' },
    ...filterOptions,
    reasonOption,
  ],
  async run({ args, flags, context }) {
    const isAll = flags.has('all-matching')
    if (isAll === args.length > 0) throw usage('give ids, or --all-matching')
    if (isAll) mustBeAskable(context)
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk => {
      if (isAll)
        return runBulk(context, desk, { act: 'look_up', reason, filter: filterOf(flags, 'unknown') }, 'look up')
      return forEach(context, { act: 'look up', ids: args }, async id => {
        const { version } = await readKey(desk, id)
        return settled(context, desk, id, await desk.lookUp({ id, version, reason }))
      })
    })
  },
}
