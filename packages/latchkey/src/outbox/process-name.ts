/** How a process is called where people look for it: in its leases and its beats. */
import { hostname } from 'node:os'
import type { Clock } from '../ports/clock.ts'

/** Host, process id and a random part, because containers share the first two. */
export function processName(clock: Pick<Clock, 'randomId'>): string {
  return `${hostname()}:${process.pid}:${clock.randomId().slice(0, 8)}`
}
