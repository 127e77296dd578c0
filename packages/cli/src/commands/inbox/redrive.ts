import { actOnNamed } from '../../desk/named-act.ts'
import type { CommandSpec } from '../../program/command.ts'

const idShape = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export const inboxRedrive: CommandSpec = actOnNamed({
  path: 'inbox redrive',
  summary: 'has parked messages consumed again',
  args: '<id...>',
  act: 'redrive',
  what: 'message',
  async run(desk, given) {
    // What is no id at all would be an error of the database.
    return idShape.test(given.id) ? desk.redriveInbox(given) : { kind: 'not-found' }
  },
})
