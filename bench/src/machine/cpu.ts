/** Processor time out of /proc: what a request costs stays readable when neighbours take their share of the machine. */
import { readFileSync } from 'node:fs'
import { processesInside } from '../../../test/servers/processes.ts'

/** Linux counts in hundredths of a second towards programs, whatever the kernel does inside. */
const tickUs = 10_000

/** User and system time of one process so far. */
export function processUs(pid: number): number {
  const { own } = timesOf(pid)
  return own
}

/** All of PostgreSQL: the postmaster, every child that lives in its directory, and the children it has collected. */
export function postgresUs(postmaster: number, dataDir: string): number {
  const living = processesInside(dataDir).reduce((sum, pid) => sum + timesOf(pid).own, 0)
  return living + timesOf(postmaster).collected
}

/** Busy time of all cores, time stolen by other machines included. */
export function machineUs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return (user + nice + system + irq + softirq + steal) * tickUs
}

function timesOf(pid: number): { own: number; collected: number } {
  // The name in parentheses may itself hold spaces and parentheses; the fields follow the last one.
  const fields = contents(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? []
  const ticks = (from: number) => Number(fields[from] ?? 0) + Number(fields[from + 1] ?? 0)
  return { own: ticks(11) * tickUs, collected: ticks(13) * tickUs }
}

function contents(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It ended between listing it and reading it.
    return ''
  }
}
