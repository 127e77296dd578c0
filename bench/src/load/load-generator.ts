/** Starting the load generator, and telling it what to do. */
import { type Child, startChild } from '../machine/child.ts'
import type { Load, LoadResult } from './load.ts'

export interface LoadGenerator {
  readonly pid: number
  run(load: Load): Promise<LoadResult>
  stop(): Promise<void>
}

export async function startLoadGenerator(program: string): Promise<LoadGenerator> {
  const child: Child = await startChild(program, [])
  return {
    pid: child.pid,
    async run(load) {
      const answer = (await child.ask(load)) as { result: LoadResult } | { error: string }
      if ('error' in answer) throw new Error(`the load failed: ${answer.error}`)
      return answer.result
    },
    stop: child.stop,
  }
}
