import { actOnNamed } from '../../desk/named-act.ts'
import type { CommandSpec } from '../../program/command.ts'

export const proposalsReject: CommandSpec = actOnNamed({
  path: 'proposals reject',
  summary: 'turns a proposal down; never one’s own',
  args: '<id>',
  act: 'reject',
  what: 'proposal',
  run: (desk, { id, reason }) => desk.reject({ proposalId: id, reason }),
})
