/** What every command is given: settings, output, terminal, time, and the signal of an interruption. */
import { type Clock, systemClock } from 'latchkey'
import { readSettings, type Settings } from '../config/settings.ts'
import { type Format, outputOf, type Output } from '../output/output.ts'
import { terminalOf, type Terminal } from '../terminal/terminal.ts'
import { durationText, parseDuration } from './duration.ts'
import { usage } from './exit.ts'
import type { Flags } from './flags.ts'

export interface Context {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly flags: Flags
  readonly settings: Settings
  readonly out: Output
  readonly terminal: Terminal
  readonly clock: Clock
  readonly timeoutMs: number
  /** Aborted by Ctrl-C and by SIGTERM. */
  readonly signal: AbortSignal
  /** An instant as a person wants it: how long ago, or in UTC with --utc. */
  when(atMs: number | undefined): string
}

export interface ContextInput {
  readonly flags: Flags
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly signal: AbortSignal
}

export async function contextOf(input: ContextInput): Promise<Context> {
  const { flags, cwd, env, signal } = input
  const clock = systemClock
  const settings = await readSettings(input)
  const { timeout, color, utc } = settings.of
  return {
    ...{ cwd, env, flags, settings, clock, signal },
    timeoutMs: parseDuration(`timeout (${timeout.origin})`, timeout.value ?? ''),
    out: outputOf({
      stdout: process.stdout,
      stderr: process.stderr,
      format: formatOf(flags),
      color: colorOf(color.value, color.origin),
      noColor: (env['NO_COLOR'] ?? '') !== '',
      quiet: flags.has('quiet'),
      verbose: flags.has('verbose'),
      nowMs: () => clock.monotonicMs(),
    }),
    // Without the flag, the parser sets it to true.
    terminal: terminalOf({ stdin: process.stdin, stderr: process.stderr, noInput: !flags.has('input'), signal }),
    when: whenOf(clock, utc.value === 'true' || utc.value === '1'),
  }
}

export function formatOf(flags: Flags): Format {
  if (flags.has('json') && flags.has('jsonl')) throw usage('--json and --jsonl are two formats: choose one')
  if (flags.has('jsonl')) return 'jsonl'
  return flags.has('json') ? 'json' : 'text'
}

function colorOf(value: string | undefined, origin: string): 'auto' | 'always' | 'never' {
  if (value === 'auto' || value === 'always' || value === 'never') return value
  throw usage(`color must be auto, always or never (got ${value}, from ${origin})`)
}

function whenOf(clock: Clock, utc: boolean): Context['when'] {
  return atMs => {
    if (atMs === undefined) return '-'
    if (utc) return new Date(atMs).toISOString()
    const ageMs = clock.nowMs() - atMs
    return ageMs >= 0 ? `${durationText(ageMs)} ago` : `in ${durationText(-ageMs)}`
  }
}
