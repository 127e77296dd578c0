import { actOnRows } from '../../desk/named-act.ts'
import type { CommandSpec } from '../../program/command.ts'

export const parkedNote: CommandSpec = actOnRows({
  path: 'parked note',
  summary: 'writes a note on a row, for the next person who looks at it: --reason is the note',
  args: '<id>',
  act: 'note',
  run: (desk, given) => desk.note(given),
})
