import type { Overview } from 'latchkey/admin'
import { found } from '../desk/answers.ts'
import { withDesk } from '../desk/open.ts'
import { undecided } from '../desk/pages.ts'
import type { Colors } from '../output/colors.ts'
import type { CommandSpec } from '../program/command.ts'
import type { Context } from '../program/context.ts'
import { durationText } from '../program/duration.ts'
import { type Exit, exits } from '../program/exit.ts'
import { pause } from '../program/pause.ts'

export const status: CommandSpec = {
  path: 'status',
  summary: 'is anything unsafe or stuck: what is unknown, parked or overdue, the outbox, the workers',
  options: [
    { flags: '--watch', summary: 'again every 2 s, until Ctrl-C' },
    { flags: '--fail-older-than <duration>', summary: 'exit with 1 if something has been unknown for longer' },
  ],
  run: ({ flags, context }) =>
    withDesk(context, async desk => {
      const failMs = flags.durationMs('fail-older-than')
      const show = async () => {
        const overview = found(await desk.overview(), 'status')
        context.out.value(overview, () => overviewLines(overview, context.out.paint))
        if (failMs === undefined) return exits.done
        if (overview.unknown.oldestMs > failMs) return exits.no
        if (overview.partial && !flags.has('watch')) throw undecided('status')
        return exits.done
      }
      return flags.has('watch') ? watch(context, show) : show()
    }),
}

const watchMs = 2_000

/** A screen that is drawn again on a terminal; elsewhere one after another. */
async function watch({ signal }: Context, show: () => Promise<Exit>): Promise<Exit> {
  while (!signal.aborted) {
    if (process.stdout.isTTY) process.stdout.write('\u001B[2J\u001B[H')
    await show()
    await pause(watchMs, signal)
  }
  return exits.interrupted
}

function overviewLines(overview: Overview, paint: Colors): readonly string[] {
  const { unknown, parked, overdue, outbox, inbox, workers, rates, partial } = overview
  const count = ({ count: number, oldestMs }: { count: number; oldestMs: number }) =>
    number === 0 ? paint.good('0') : `${paint.bad(String(number))}, oldest ${durationText(oldestMs)}`
  return [
    `unknown   ${count(unknown)}`,
    `parked    ${count(parked)}`,
    `overdue   ${count(overdue)}`,
    ...(outbox
      ? [`outbox    ${outbox.waiting} waiting, oldest ${durationText(outbox.oldestMs)}, ${outbox.parked} parked`]
      : []),
    ...(inbox ? [`inbox     ${inbox.waiting} parked`] : []),
    `workers   ${workersText(overview) ?? paint.bad('none has run in the last day: start latchkey work, or createWorkers in your application')}`,
    ...(rates.length === 0 ? [] : [`last hour ${ratesText(rates)}`]),
    ...(partial ? ['the store took too long: there may be more than is shown'] : []),
    ...(workers.some(({ lastError }) => lastError)
      ? [
          `errors    ${workers.flatMap(({ loop, lastError }) => (lastError ? [`${loop}: ${lastError}`] : [])).join('; ')}`,
        ]
      : []),
  ]
}

/** By loop, the process that ran last. */
function workersText({ workers }: Overview): string | undefined {
  const youngest = new Map<string, number>()
  for (const { loop, seenAgoMs, lastTurnAgoMs } of workers) {
    const agoMs = Math.max(seenAgoMs, lastTurnAgoMs ?? seenAgoMs)
    youngest.set(loop, Math.min(youngest.get(loop) ?? Infinity, agoMs))
  }
  if (youngest.size === 0) return undefined
  return [...youngest].map(([loop, agoMs]) => `${loop} ${durationText(agoMs)}`).join('  ')
}

function ratesText(rates: Overview['rates']): string {
  const sums = new Map<string, number>()
  for (const { metric, count } of rates) sums.set(metric, (sums.get(metric) ?? 0) + count)
  return [...sums].map(([metric, sum]) => `${metric} ${sum}`).join('  ')
}
