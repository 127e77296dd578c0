import type { Counted, LaneState } from 'latchkey/admin'
import { found } from '../../desk/answers.ts'
import { withDesk } from '../../desk/open.ts'
import { type Column, table } from '../../output/table.ts'
import type { CommandSpec } from '../../program/command.ts'
import { durationText } from '../../program/duration.ts'
import { exits } from '../../program/exit.ts'

export const outboxLanes: CommandSpec = {
  path: 'outbox lanes',
  summary: 'what is not delivered yet, in each lane, and who holds it',
  run: ({ context }) =>
    withDesk(context, async desk => {
      const lag = found(await desk.outbox(), 'outbox')
      const { lanes, partial } = found(await desk.outboxLanes(), 'outbox')
      context.out.value({ ...lag, byLane: lanes, partial }, () => [
        `lanes      ${lag.lanes}`,
        `waiting    ${lag.waiting}${lag.waiting === 0 ? '' : `, oldest ${durationText(lag.oldestMs)}`}`,
        `held back  ${lag.heldBack}${lag.heldBack === 0 ? '' : ', by an older transaction that is still open: see latchkey doctor'}`,
        `parked     ${lag.parked}`,
        ...(lanes.length === 0 ? [] : ['', ...table(lanes, columns, context.out.paint)]),
      ])
      if (partial) context.out.talk('the lanes took too long to read: they are not shown')
      return exits.done
    }),
}

const columns: readonly Column<LaneState>[] = [
  { title: 'lane', text: ({ lane }) => lane },
  { title: 'waiting', text: ({ waiting }) => countText(waiting) },
  { title: 'parked', text: ({ parked }) => countText(parked) },
  { title: 'behind parked', text: ({ behind }) => countText(behind) },
  { title: 'oldest', text: ({ oldestMs }) => (oldestMs === 0 ? undefined : durationText(oldestMs)) },
  { title: 'held by', text: ({ lease }) => lease?.by },
  { title: 'for', text: ({ lease }) => leftText(lease) },
]

function countText({ count, more }: Counted): string {
  return more ? `${count}+` : String(count)
}

/** A server says null where it has none. */
function leftText(lease: LaneState['lease'] | null): string | undefined {
  if (lease === undefined || lease === null) return undefined
  return lease.leftMs > 0 ? durationText(lease.leftMs) : 'over: its relay died'
}
