import type { ParkedMessageView } from 'latchkey/admin'
import { reasonOf, reasonOption } from '../../desk/act.ts'
import { done } from '../../desk/answers.ts'
import type { Desk } from '../../desk/desk.ts'
import { forEach } from '../../desk/each.ts'
import { withActingDesk } from '../../desk/open.ts'
import { pagesOf } from '../../desk/pages.ts'
import { plain } from '../../output/table.ts'
import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'
import { confirmPlan, mustBeAskable } from '../../terminal/confirm.ts'

/** As many parked messages are looked at to name those that are given. */
const namedMax = 1_000

export const outboxSkip: CommandSpec = {
  path: 'outbox skip',
  summary: 'never delivers parked messages, and delivers those behind them',
  args: '<id...>',
  options: [reasonOption],
  async run({ args: ids, flags, context }) {
    mustBeAskable(context)
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, async desk => {
      const sample = await missedLines(desk, ids)
      const warning = 'Their consumers never get them, and are not notified: inform the people who run them.'
      if ((await confirmPlan(context, { act: 'skip', matched: ids.length, sample, warning })) === 'dry-run')
        return exits.done
      return forEach(context, { act: 'skip', ids }, async id =>
        done(await desk.skipOutbox({ position: id, reason }), `message ${id}`),
      )
    })
  },
}

/** A line for each: what its consumer will miss. */
async function missedLines(desk: Desk, ids: readonly string[]): Promise<readonly string[]> {
  const { items, more } = await pagesOf<ParkedMessageView>(page => desk.outboxParked(page), namedMax)
  const parked = new Map(items.map(message => [message.position, message]))
  return ids.map(id => {
    const message = parked.get(id)
    if (message === undefined) return `${id}  ${more ? `not among the first ${namedMax} parked` : 'not parked'}`
    const { topic, aggregate, dedupId } = message
    // A server says null where it has none.
    const of = aggregate === undefined || aggregate === null ? '' : ` of ${aggregate}`
    return plain(`${id}  to ${topic}${of}, dedup id ${dedupId}`)
  })
}
