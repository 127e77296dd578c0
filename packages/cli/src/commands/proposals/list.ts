import { found } from '../../desk/answers.ts'
import { withDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'
import { durationText } from '../../program/duration.ts'
import { exits } from '../../program/exit.ts'

export const proposalsList: CommandSpec = {
  path: 'proposals list',
  summary: 'what waits for a second person',
  run: ({ context }) =>
    withDesk(context, async desk => {
      const proposals = found(await desk.proposals(), 'proposals')
      context.out.rows(
        proposals,
        [
          { title: 'proposal', text: ({ proposalId }) => proposalId },
          { title: 'state', text: ({ state }) => state },
          { title: 'act', text: ({ act }) => act },
          { title: 'row', text: ({ id }) => id },
          { title: 'operation', text: ({ operation }) => operation },
          { title: 'by', text: ({ by }) => by },
          { title: 'reason', text: ({ reason }) => reason },
          { title: 'evidence', text: ({ evidence }) => evidence },
          {
            title: 'expires',
            text: ({ state, expiresInMs }) => (state === 'open' ? `in ${durationText(expiresInMs)}` : undefined),
          },
        ],
        'nothing waits for a second person',
      )
      return exits.done
    }),
}
