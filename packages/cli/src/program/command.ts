/** What a command is: its words, its options, and what it does. Help, completion and the guide's test are made from these. */
import type { Context } from './context.ts'
import type { Exit } from './exit.ts'
import type { Flags } from './flags.ts'

export interface CommandSpec {
  /** Its words, such as `unknown list`. */
  readonly path: string
  readonly summary: string
  /** As in the usage line: `<id>`, `<id...>`, `[id...]`. */
  readonly args?: string
  readonly options?: readonly OptionSpec[]
  run(call: Call): Promise<Exit>
}

export interface OptionSpec {
  /** As in the help: `--older-than <duration>`. */
  readonly flags: string
  readonly summary: string
  readonly choices?: readonly string[]
}

export interface Call {
  readonly args: readonly string[]
  readonly flags: Flags
  readonly context: Context
}
