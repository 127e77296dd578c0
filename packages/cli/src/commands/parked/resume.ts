import { readKey, reasonOf, reasonOption, settled } from '../../desk/act.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'

export const parkedResume: CommandSpec = {
  path: 'parked resume',
  summary: 'resumes parked rows: due now, in the state they had',
  args: '<id...>',
  options: [reasonOption],
  async run({ args, flags, context }) {
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk =>
      forEach(context, { act: 'resume', ids: args }, async id => {
        const { version } = await readKey(desk, id)
        return settled(context, desk, id, await desk.resume({ id, version, reason }))
      }),
    )
  },
}
