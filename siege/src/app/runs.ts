/** What the handlers record, a line for each run, so that a process that dies leaves what it did. */
import { readFileSync } from 'node:fs'

/** The part of an execution that explains a second run. */
export interface Run {
  readonly id: string
  readonly operation: string
  readonly attempt: number
  /** 0: the store did not answer in time, and the operation ran without a claim, as its `onStoreDown` allows. */
  readonly fence: number
}

export function lineOf({ id, operation, attempt, fence }: Run): string {
  return `${JSON.stringify({ id, operation, attempt, fence } satisfies Run)}\n`
}

export function readRuns(file: string): readonly Run[] {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map(line => JSON.parse(line) as Run)
}

export function runsById(runs: readonly Run[]): ReadonlyMap<string, readonly Run[]> {
  const byId = new Map<string, Run[]>()
  for (const run of runs) {
    const others = byId.get(run.id)
    if (others === undefined) byId.set(run.id, [run])
    else others.push(run)
  }
  return byId
}
