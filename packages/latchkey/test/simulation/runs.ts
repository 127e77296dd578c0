/** What is being executed in processes that live: each may still reach the provider, so an operator waits for its end. */
import type { Process, World } from './world.ts'

export interface Runs {
  begin(process: Process, id: string): () => void
  /** One that began before this time has not ended. */
  anyBefore(id: string, atMs: number): boolean
}

export function createRuns(world: World): Runs {
  const running = new Map<string, Set<{ readonly process: Process; readonly atMs: number }>>()
  return {
    begin(process, id) {
      const group = running.get(id) ?? new Set()
      running.set(id, group)
      const run = { process, atMs: world.nowMs() }
      group.add(run)
      return () => void group.delete(run)
    },
    anyBefore: (id, atMs) => [...(running.get(id) ?? [])].some(run => run.process.alive && run.atMs <= atMs),
  }
}
