#!/usr/bin/env node
/** The program `latchkey`. */
import { main } from './main.ts'
import { exits } from './program/exit.ts'

const interrupted = new AbortController()
// Once: the command says what was done, and ends. Twice: at once.
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => (interrupted.signal.aborted ? process.exit(exits.interrupted) : interrupted.abort()))
}
// A reader that has enough, such as head, closes the pipe: nobody is left to tell.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : exits.no))

const exit = await main(process.argv.slice(2), interrupted.signal)
// What a driver keeps open must not hold the program, and what was written must have left it.
process.exitCode = exit
process.stdout.write('', () => process.stderr.write('', () => process.exit(exit)))
