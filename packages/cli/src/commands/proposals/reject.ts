import { reasonOf, reasonOption } from '../../desk/act.ts'
import { done } from '../../desk/answers.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'

export const proposalsReject: CommandSpec = {
  path: 'proposals reject',
  summary: 'turns a proposal down',
  args: '<id>',
  options: [reasonOption],
  async run({ args, flags, context }) {
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk =>
      forEach(context, { act: 'reject', ids: args }, async proposalId =>
        done(await desk.reject({ proposalId, reason }), `proposal ${proposalId}`),
      ),
    )
  },
}
