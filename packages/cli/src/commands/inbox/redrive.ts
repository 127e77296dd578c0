import { actOnNamed } from '../../desk/named-act.ts'
import type { CommandSpec } from '../../program/command.ts'

export const inboxRedrive: CommandSpec = actOnNamed({
  path: 'inbox redrive',
  summary: 'has parked messages consumed again',
  args: '<id...>',
  act: 'redrive',
  what: 'message',
  run: (desk, given) => desk.redriveInbox(given),
})
