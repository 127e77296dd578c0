/** Runs one call of the program, and says how it ended. */
import { CommanderError } from 'commander'
import { commands, groups } from './commands/index.ts'
import { candidates, completeWord } from './program/completion.ts'
import { type Exit, exits } from './program/exit.ts'
import { failureOf } from './program/failure.ts'
import { programOf } from './program/program.ts'
import { version } from './version.ts'

export async function main(argv: readonly string[], signal: AbortSignal): Promise<Exit> {
  if (argv[0] === completeWord) return complete(argv.slice(1))
  let exit: Exit = exits.done
  const program = programOf({ commands, groups, version, signal, ended: code => void (exit = code) })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exit
  } catch (error) {
    if (error instanceof CommanderError) return exitOfParser(error)
    return report(error, { json: argv.includes('--json') || argv.includes('--jsonl'), verbose: isVerbose(argv) })
  }
}

/** The scripts hand over the word that is being written, and those before it. */
function complete([at = '', ...words]: readonly string[]): Exit {
  const found = candidates(commands, words, at.replace(/^--at=/, ''))
  process.stdout.write(found.map(word => `${word}\n`).join(''))
  return exits.done
}

/** The parser has said what is wrong. Help that was asked for is an answer; help instead of a command is not. */
function exitOfParser({ code, exitCode }: CommanderError): Exit {
  return exitCode === 0 && code !== 'commander.help' ? exits.done : exits.usage
}

function report(error: unknown, { json, verbose }: { json: boolean; verbose: boolean }): Exit {
  const { exit, code, message } = failureOf(error)
  const text = json ? JSON.stringify({ error: { code, message, exit } }) : `latchkey: ${message}`
  process.stderr.write(`${text}\n`)
  if (verbose && error instanceof Error) process.stderr.write(`${error.stack}\n`)
  return exit
}

const isVerbose = (argv: readonly string[]): boolean => argv.includes('-v') || argv.includes('--verbose')
