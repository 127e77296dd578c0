import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

// Everything here reads /proc. Elsewhere than on Linux the answers are "none" and "cannot tell": a server is then
// recognised by its data directory alone, which a query asks for anyway.
const LISTENING = '0A'

/** Processes whose working directory is `directory` or below: PostgreSQL's postmaster and all of its children. */
export function processesInside(directory: string): number[] {
  return allProcesses().filter(pid => {
    const cwd = linkTarget(`/proc/${pid}/cwd`)
    return cwd === directory || cwd?.startsWith(`${directory}/`) === true
  })
}

/** Living processes of a process group. The dead that nobody has collected yet do not count. */
export function processesInGroup(group: number): number[] {
  return allProcesses().filter(pid => {
    // The name in parentheses may itself hold spaces and parentheses; state, parent and group follow the last one.
    const [state, , processGroup] = contents(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? []
    return processGroup === String(group) && state !== 'Z'
  })
}

/** Whether process `pid` itself listens on 127.0.0.1:`port`, so that nobody talks to a stranger's server. */
export function ownsPort(pid: number, port: number): 'yes' | 'no' | 'cannot-tell' {
  if (!existsSync('/proc/net/tcp')) return 'cannot-tell'
  const inode = listeningInode(port)
  if (inode === undefined) return 'no'
  const descriptors = entries(`/proc/${pid}/fd`)
  return descriptors.some(fd => linkTarget(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`) ? 'yes' : 'no'
}

function listeningInode(port: number): string | undefined {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  const fields = lines.map(line => line.trim().split(/\s+/))
  return fields.find(field => field[1] === local && field[3] === LISTENING)?.[9]
}

/** Asks until the answer is true; false when `limitMs` have passed. */
export async function until(condition: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs
  while (performance.now() < end) {
    if (await condition()) return true
    await sleep(20)
  }
  return condition()
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It ended between our look and the signal, which is what the signal was for.
  }
}

// Without Linux's /proc there is no such entry, and the answer is nobody.
function allProcesses(): number[] {
  return entries('/proc')
    .map(name => Number(name))
    .filter(pid => Number.isInteger(pid))
}

// A process may end between listing it and reading it.
function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function entries(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function contents(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
