import type { WorkerName, Workers } from 'latchkey/workers'
import { openWorkers } from '../desk/workers.ts'
import type { CommandSpec } from '../program/command.ts'
import { interrupted, pause } from '../program/pause.ts'
import type { Context } from '../program/context.ts'
import { CliError, type Exit, exits, usage } from '../program/exit.ts'

export const work: CommandSpec = {
  path: 'work',
  summary: 'runs the background work until Ctrl-C; what needs your code is run by the application of the configuration',
  options: [
    { flags: '--only <workers>', summary: 'some of them, such as sweeper,reaper' },
    { flags: '--once', summary: 'one turn of each, and the end' },
  ],
  async run({ flags, context }) {
    if (flags.has('dry-run')) throw usage('work cannot pretend: --dry-run is for commands that act once')
    const { workers, close } = await openWorkers(context, flags.list('only') as readonly WorkerName[] | undefined)
    try {
      workers.start()
      const names = Object.keys(workers.health())
      context.out.talk(`running ${names.join(', ')}`)
      return await (flags.has('once') ? once(context, workers) : untilSignal(context, workers))
    } finally {
      await close()
    }
  },
}

const lookMs = 100

/** One turn of each, however often the store makes a loop try again within the time. */
async function once({ clock, timeoutMs, signal, out }: Context, workers: Workers): Promise<Exit> {
  const untilMs = clock.monotonicMs() + timeoutMs
  const waiting = () => Object.entries(workers.health()).filter(([, { turns, failures }]) => turns - failures < 1)
  while (waiting().length > 0 && clock.monotonicMs() < untilMs && !signal.aborted) {
    await pause(lookMs, signal)
  }
  const late = waiting()
  await workers.drain({ timeoutMs })
  out.value(healthOf(workers), () => [])
  if (signal.aborted) return exits.interrupted
  if (late.length === 0) return exits.done
  const why = late.map(([name, { lastError }]) => (lastError === undefined ? name : `${name} (${textOf(lastError)})`))
  throw new CliError(exits.no, 'not-done', `no turn of ${why.join(', ')} succeeded within ${timeoutMs} ms`)
}

/** A process that is asked to end has done its work. */
async function untilSignal({ signal, timeoutMs, out }: Context, workers: Workers): Promise<Exit> {
  await interrupted(signal)
  const { drained } = await workers.drain({ timeoutMs })
  out.value(healthOf(workers), () => [])
  out.talk(drained ? 'ended; nothing is left half-done' : 'ended; what was running is recovered as after a crash')
  return exits.interrupted
}

function healthOf(workers: Workers): object {
  return Object.fromEntries(
    Object.entries(workers.health()).map(([name, { turns, failures, lastError }]) => [
      name,
      { turns, failures, lastError: lastError === undefined ? null : textOf(lastError) },
    ]),
  )
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error)
}
