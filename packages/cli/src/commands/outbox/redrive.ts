import { reasonOf, reasonOption } from '../../desk/act.ts'
import { done } from '../../desk/answers.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'

export const outboxRedrive: CommandSpec = {
  path: 'outbox redrive',
  summary: 'delivers parked messages again, in their place',
  args: '<id...>',
  options: [reasonOption],
  async run({ args, flags, context }) {
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk =>
      forEach(context, { act: 'redrive', ids: args }, async position =>
        done(await desk.redriveOutbox({ position, reason }), `message ${position}`),
      ),
    )
  },
}
