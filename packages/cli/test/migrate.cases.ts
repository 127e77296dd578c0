/** What `migrate` and `migrate status` do on any store with tables. */
import { expect, it } from 'vitest'
import type { Program } from './program.ts'

/** `store`: an empty one, inside tests; its settings as environment. */
export function migrateCases(program: Program, store: () => { readonly env: Readonly<Record<string, string>> }): void {
  const run = (...args: string[]) => program.run(args, store())

  it('shows the statements and changes nothing in a dry run, then applies some steps, then all, then none', async () => {
    const dry = await run('migrate', '--dry-run')
    expect(dry.code).toBe(0)
    expect(dry.stdout).toMatch(/^-- step 1: /)
    expect(dry.stdout).toMatch(/create table/i)

    expect((await run('migrate', '--to', '3')).code).toBe(0)
    const status = await run('migrate', 'status', '--jsonl')
    const steps = status.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { version: number; appliedAtMs?: number; known: boolean })
    expect(status.code).toBe(1)
    expect(steps.filter(({ appliedAtMs }) => appliedAtMs !== undefined).map(({ version }) => version)).toEqual([
      1, 2, 3,
    ])

    expect((await run('migrate')).code).toBe(0)
    expect((await run('migrate', 'status')).code).toBe(0)
    const again = await program.json<{ steps: unknown[] }>(['migrate'], store())
    expect(again.steps).toEqual([])
  })
}
