import { reasonOf, reasonOption } from '../../desk/act.ts'
import { done } from '../../desk/answers.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'

export const proposalsApprove: CommandSpec = {
  path: 'proposals approve',
  summary: 'carries a proposal out, as the second person; never one’s own',
  args: '<id>',
  options: [reasonOption],
  async run({ args, flags, context }) {
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk =>
      forEach(context, { act: 'approve', ids: args }, async proposalId =>
        done(await desk.approve({ proposalId, reason }), `proposal ${proposalId}`),
      ),
    )
  },
}
