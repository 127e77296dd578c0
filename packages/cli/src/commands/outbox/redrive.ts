import { actOnNamed } from '../../desk/named-act.ts'
import type { CommandSpec } from '../../program/command.ts'

export const outboxRedrive: CommandSpec = actOnNamed({
  path: 'outbox redrive',
  summary: 'delivers parked messages again, in their place',
  args: '<id...>',
  act: 'redrive',
  what: 'message',
  run: (desk, { id, reason }) => desk.redriveOutbox({ position: id, reason }),
})
