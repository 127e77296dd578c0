/** What the program ends with. Scripts rely on these numbers: they stand in --help, in the guide and in the tests. */
export const exits = {
  done: 0,
  /** The answer is no: drift, a check that failed, a row of a bulk act that failed. */
  no: 1,
  /** Usage, configuration, or a question that has no terminal to be asked on. */
  usage: 2,
  notFound: 3,
  /** A guard refused it: the quarantine, a row that moved, a missing right, a second person. */
  refused: 4,
  /** The store or the server does not answer, or is not fit. */
  unreachable: 5,
  interrupted: 130,
} as const

export type Exit = (typeof exits)[keyof typeof exits]

export const exitLines: readonly string[] = [
  '0    done',
  '1    the answer is no: drift, a failed check, a row that failed, something older than --fail-older-than',
  '2    usage or configuration, or a question and no terminal to ask it on',
  '3    not found',
  '4    refused by a guard: the quarantine, a row that moved, a missing right, a second person',
  '5    the store or the server cannot be reached, or is not fit for use',
  '130  interrupted; what was done is said',
]

/** Ends the program with this code. The message is for a person: what happened, to what, and what to do. */
export class CliError extends Error {
  readonly exit: Exit
  /** A short name for scripts, in the output of --json. */
  readonly code: string

  constructor(exit: Exit, code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CliError'
    this.exit = exit
    this.code = code
  }
}

export function usage(message: string): CliError {
  return new CliError(exits.usage, 'usage', message)
}

export function notFound(message: string): CliError {
  return new CliError(exits.notFound, 'not-found', message)
}
