/** The parser, made from the commands. */
import { Command, Option } from 'commander'
import type { Call, CommandSpec, OptionSpec } from './command.ts'
import { contextOf } from './context.ts'
import { type Exit, exitLines } from './exit.ts'
import { flagsOf } from './flags.ts'

export const globalOptions: readonly OptionSpec[] = [
  {
    flags: '--config <file>',
    summary: 'the configuration file, instead of the nearest latchkey.config.ts, .js or .json',
  },
  { flags: '--profile <name>', summary: 'a profile of the configuration file' },
  {
    flags: '--store <name>',
    summary: 'the environment variable with the address of the store (default: DATABASE_URL)',
  },
  { flags: '--schema <name>', summary: "the schema of Latchkey's tables in PostgreSQL (default: latchkey)" },
  { flags: '--server <url>', summary: 'an admin API: commands go there, and not to the store' },
  { flags: '--token-file <file>', summary: 'the token for --server; or LATCHKEY_TOKEN' },
  { flags: '--no-application', summary: 'straight to the store, even where the configuration has an application' },
  { flags: '--json', summary: 'results as JSON on stdout' },
  { flags: '--jsonl', summary: 'results as JSON, one line each' },
  { flags: '-y, --yes', summary: 'confirm without being asked' },
  { flags: '--dry-run', summary: 'show what would be done, and do nothing' },
  { flags: '--no-input', summary: 'ask nothing, even on a terminal' },
  { flags: '--timeout <duration>', summary: 'how long the store or the server may take (default: 30s)' },
  { flags: '--color <when>', summary: 'auto, always or never', choices: ['auto', 'always', 'never'] },
  { flags: '--utc', summary: 'times in UTC, instead of how long ago' },
  { flags: '-q, --quiet', summary: 'no talk on stderr' },
  { flags: '-v, --verbose', summary: 'more talk on stderr' },
]

export interface ProgramOptions {
  readonly commands: readonly CommandSpec[]
  readonly groups: Readonly<Record<string, string>>
  readonly version: string
  readonly signal: AbortSignal
  readonly ended: (exit: Exit) => void
}

export function programOf(options: ProgramOptions): Command {
  const { commands, groups, version } = options
  const program = new Command('latchkey')
    .description('Find a key, settle what is unknown, migrate, and look at what is wrong.')
    .version(version, '-V, --version')
    .helpOption('-h, --help')
    .addHelpText('after', `\nExit codes:\n${exitLines.map(line => `  ${line}`).join('\n')}`)
  configure(program)
  for (const spec of globalOptions) program.addOption(optionOf(spec))
  for (const spec of commands) add(program, spec, groups, options)
  return program
}

/** Errors of the parser are thrown, so that one place decides how the program ends. */
function configure(command: Command): Command {
  return command
    .exitOverride()
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({ writeErr: text => void process.stderr.write(text) })
}

function add(program: Command, spec: CommandSpec, groups: ProgramOptions['groups'], options: ProgramOptions): void {
  const [first = '', second] = spec.path.split(' ')
  const parent = second === undefined ? program : groupOf(program, first, groups[first] ?? '')
  const command = existing(parent, second ?? first) ?? configure(parent.command(second ?? first))
  command.summary(spec.summary).description(spec.summary)
  if (spec.args !== undefined) command.arguments(spec.args)
  for (const option of spec.options ?? []) command.addOption(optionOf(option))
  command.action(async (...given: unknown[]) => options.ended(await run(spec, given, options)))
}

function groupOf(program: Command, name: string, summary: string): Command {
  return existing(program, name) ?? configure(program.command(name)).summary(summary).description(summary)
}

function existing(parent: Command, name: string): Command | undefined {
  return parent.commands.find(command => command.name() === name)
}

function optionOf({ flags, summary, choices }: OptionSpec): Option {
  const option = new Option(flags, summary)
  return choices === undefined ? option : option.choices([...choices])
}

/** The parser hands over the arguments, the options, and the command itself. */
async function run(spec: CommandSpec, given: readonly unknown[], { signal }: ProgramOptions): Promise<Exit> {
  const command = given.at(-1) as Command
  const args = command.args.map(String)
  const flags = flagsOf(command.optsWithGlobals())
  const context = await contextOf({ flags, cwd: process.cwd(), env: process.env, signal })
  const call: Call = { args, flags, context }
  return spec.run(call)
}
