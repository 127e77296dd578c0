import type { ParkedMessageView } from 'latchkey/admin'
import { pagesOf } from '../../desk/pages.ts'
import { withDesk } from '../../desk/open.ts'
import { limitOption } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'

export const outboxParked: CommandSpec = {
  path: 'outbox parked',
  summary: 'the messages that could not be delivered',
  options: [limitOption],
  run: ({ flags, context }) =>
    withDesk(context, async desk => {
      const { items: messages, more } = await pagesOf<ParkedMessageView>(
        page => desk.outboxParked(page),
        flags.count('limit'),
      )
      context.out.rows(
        messages,
        [
          { title: 'id', text: ({ position }) => position },
          { title: 'topic', text: ({ topic }) => topic },
          { title: 'aggregate', text: ({ aggregate }) => aggregate },
          { title: 'attempts', text: ({ attempts }) => attempts },
          { title: 'cause', text: ({ cause }) => cause },
          { title: 'parked', text: ({ parkedAtMs }) => context.when(parkedAtMs) },
        ],
        'no message is parked',
      )
      if (more) context.out.talk('there are more: raise --limit')
      return exits.done
    }),
}
