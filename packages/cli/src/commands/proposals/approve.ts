import { actOnNamed } from '../../desk/named-act.ts'
import type { CommandSpec } from '../../program/command.ts'

export const proposalsApprove: CommandSpec = actOnNamed({
  path: 'proposals approve',
  summary: 'carries a proposal out, as the second person; never one’s own',
  args: '<id>',
  act: 'approve',
  what: 'proposal',
  run: (desk, { id, reason }) => desk.approve({ proposalId: id, reason }),
})
