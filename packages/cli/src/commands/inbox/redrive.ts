import { reasonOf, reasonOption } from '../../desk/act.ts'
import { done } from '../../desk/answers.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'

export const inboxRedrive: CommandSpec = {
  path: 'inbox redrive',
  summary: 'has parked messages consumed again',
  args: '<id...>',
  options: [reasonOption],
  async run({ args, flags, context }) {
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk =>
      forEach(context, { act: 'redrive', ids: args }, async id =>
        done(await desk.redriveInbox({ id, reason }), `message ${id}`),
      ),
    )
  },
}
