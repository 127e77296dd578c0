/** What every suite of commands is given, and what operators do in them. */
import type { AdminKey, AuditLineOfOperators } from 'latchkey/admin'
import type { Program, Ran, RunOptions } from './program.ts'
import type { Shop } from './shop.ts'

export interface DeskHarness {
  readonly env: Readonly<Record<string, string>>
  readonly shop: Shop
  /** Makes every unknown row older by this. */
  age(ms: number): Promise<void>
}

export const reason: readonly string[] = ['--reason', 'seen in the dashboard']

/** No row has it. */
export const noRow = '00000000-0000-4000-8000-000000000000'

export interface Desk {
  readonly program: Program
  readonly harness: () => DeskHarness
  run(args: readonly string[], options?: RunOptions): Promise<Ran>
  json<T>(...args: string[]): Promise<T>
  settle(id: string, ...args: string[]): Promise<Ran>
  show(id: string): Promise<AdminKey>
  auditOf(id: string): Promise<readonly AuditLineOfOperators[]>
}

export function deskOf(program: Program, harness: () => DeskHarness): Desk {
  const run: Desk['run'] = (args, options = {}) =>
    program.run(args, { ...options, env: { ...harness().env, ...options.env } })
  const json = <T>(...args: string[]) => program.json<T>(args, { env: harness().env })
  return {
    ...{ program, harness, run, json },
    settle: (id, ...args) => run(['settle', id, '--yes', ...reason, ...args]),
    show: id => json<AdminKey>('key', 'show', id),
    auditOf: id => json<readonly AuditLineOfOperators[]>('audit', '--id', id),
  }
}

/** The results of a call with --jsonl, in their order. */
export function linesOf<T>(stdout: string): readonly T[] {
  // The test says what it expects.
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as T)
}
