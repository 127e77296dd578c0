import { found } from '../../desk/answers.ts'
import { withDesk } from '../../desk/open.ts'
import type { CommandSpec } from '../../program/command.ts'
import { durationText } from '../../program/duration.ts'
import { exits } from '../../program/exit.ts'

export const outboxLanes: CommandSpec = {
  path: 'outbox lanes',
  summary: 'what is not delivered yet, and how long it waits',
  run: ({ context }) =>
    withDesk(context, async desk => {
      const lag = found(await desk.outbox(), 'outbox')
      context.out.value(lag, () => [
        `lanes      ${lag.lanes}`,
        `waiting    ${lag.waiting}${lag.waiting === 0 ? '' : `, oldest ${durationText(lag.oldestMs)}`}`,
        `held back  ${lag.heldBack}${lag.heldBack === 0 ? '' : ', by an older transaction that is still open: see latchkey doctor'}`,
        `parked     ${lag.parked}`,
      ])
      return exits.done
    }),
}
