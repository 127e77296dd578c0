/** Commands that do one thing to whatever is named, and need nothing but a reason. */
import type { ActOutcome } from 'latchkey/admin'
import type { CommandSpec } from '../program/command.ts'
import type { Context } from '../program/context.ts'
import { type OnRow, readKey, reasonOf, reasonOption, settled } from './act.ts'
import { type Done, done } from './answers.ts'
import type { Desk } from './desk.ts'
import { forEach } from './each.ts'
import { withActingDesk } from './open.ts'

interface NamedAct extends Pick<CommandSpec, 'path' | 'summary' | 'args'> {
  /** For people, such as `redrive`. */
  readonly act: string
}

/** On what has no version: a message, a proposal. */
export interface ActOnNamed extends NamedAct {
  /** What is named, for the error. */
  readonly what: string
  run(desk: Desk, given: { readonly id: string; readonly reason: string }): Promise<ActOutcome>
}

export function actOnNamed({ what, run, ...named }: ActOnNamed): CommandSpec {
  return actOnEach(named, async ({ desk, id, reason }) => done(await run(desk, { id, reason }), `${what} ${id}`))
}

/** On rows, as they were read a moment before. */
export interface ActOnRows extends NamedAct {
  run(desk: Desk, given: OnRow): Promise<ActOutcome>
}

export function actOnRows({ run, ...named }: ActOnRows): CommandSpec {
  return actOnEach(named, async ({ context, desk, id, reason }) => {
    const { version } = await readKey(desk, id)
    return settled(context, desk, id, await run(desk, { id, version, reason }))
  })
}

interface One {
  readonly context: Context
  readonly desk: Desk
  readonly id: string
  readonly reason: string
}

function actOnEach({ act, ...spec }: NamedAct, run: (one: One) => Promise<Done>): CommandSpec {
  return {
    ...spec,
    options: [reasonOption],
    async run({ args, flags, context }) {
      const reason = await reasonOf(context, flags)
      return withActingDesk(context, desk =>
        forEach(context, { act, ids: args }, id => run({ context, desk, id, reason })),
      )
    },
  }
}
