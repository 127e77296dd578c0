import { actOnRows } from '../../desk/named-act.ts'
import type { CommandSpec } from '../../program/command.ts'

export const parkedResume: CommandSpec = actOnRows({
  path: 'parked resume',
  summary: 'resumes parked rows: due now, in the state they had',
  args: '<id...>',
  act: 'resume',
  run: (desk, given) => desk.resume(given),
})
