import type { ParkedInboxView } from 'latchkey/admin'
import { withDesk } from '../../desk/open.ts'
import { pagesOf } from '../../desk/pages.ts'
import { limitOption } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'

export const inboxParked: CommandSpec = {
  path: 'inbox parked',
  summary: 'the messages that consumers gave up on',
  options: [{ flags: '--consumer <name>', summary: 'only those of this consumer' }, limitOption],
  run: ({ flags, context }) =>
    withDesk(context, async desk => {
      const consumer = flags.text('consumer')
      const only = consumer === undefined ? {} : { consumer }
      const { items: messages, more } = await pagesOf<ParkedInboxView>(
        page => desk.inboxParked({ ...page, ...only }),
        flags.count('limit'),
      )
      context.out.rows(
        messages,
        [
          { title: 'id', text: ({ id }) => id },
          { title: 'consumer', text: row => row.consumer },
          { title: 'operation', text: ({ operation }) => operation },
          { title: 'cause', text: ({ cause }) => cause },
          { title: 'attempts', text: ({ attempts }) => attempts },
          { title: 'parked', text: ({ parkedAtMs }) => context.when(parkedAtMs) },
          { title: 'redriving', text: ({ redriving }) => (redriving ? 'yes' : undefined) },
        ],
        'no message is parked',
      )
      if (more) context.out.talk('there are more: raise --limit')
      return exits.done
    }),
}
