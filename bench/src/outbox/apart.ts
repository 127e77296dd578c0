/** Runs the measurement of the outbox in a process of its own. */
import { startChild } from '../machine/child.ts'
import type { OutboxOrder, OutboxResult } from './measure.ts'

export async function measureOutboxApart(program: string, order: OutboxOrder): Promise<OutboxResult> {
  const child = await startChild(program, [JSON.stringify(order)])
  await child.stop()
  // Our own program, and it says one thing.
  return child.ready as OutboxResult
}
