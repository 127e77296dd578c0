import { readKey, reasonOf, settled } from '../../desk/act.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'

export const parkedNote: CommandSpec = {
  path: 'parked note',
  summary: 'writes a note on a row, for whoever looks at it next',
  args: '<id>',
  options: [{ flags: '--reason <text>', summary: 'the note' }],
  async run({ args, flags, context }) {
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk =>
      forEach(context, { act: 'note', ids: args }, async id => {
        const { version } = await readKey(desk, id)
        return settled(context, desk, id, await desk.note({ id, version, reason }))
      }),
    )
  },
}
