/**
 * What lies between an engine and its database. A call may be lost, its reply may be lost, or it may take so long that it is
 * applied after its caller has given up; what a process has sent may arrive after its death.
 */
import type { Process, World } from './world.ts'

export type Fate = 'arrives' | 'call lost' | 'reply lost'

export interface Network {
  /** `serve` is one atomic step of the server, which answers at once, or later if it waits for a lock. */
  call<T>(process: Process, label: string, serve: () => T | Promise<T>): Promise<T>
  fate(): Fate
  /** How long one way takes. */
  wayMs(): number
  /** A failure is either noticed soon, or the caller gets nothing for longer than it waits. */
  noticedAfterMs(): number
}

export class ConnectionLost extends Error {}

/** `broken`: the server itself failed, which is a bug of the simulation or of the store. */
export function network(world: World, broken: (rule: string) => void): Network {
  const { chance } = world
  let outUntilMs = 0
  const net: Network = {
    fate() {
      if (chance.happens(world.faults.outage)) outUntilMs = world.nowMs() + chance.between(2_000, 12_000)
      const out = world.faults.outage > 0 && world.nowMs() < outUntilMs
      if (!out && !chance.happens(world.faults.lose)) return 'arrives'
      return chance.pick(['call lost', 'reply lost'])
    },
    wayMs: () => (chance.happens(world.faults.slow) ? chance.between(1_000, 9_000) : chance.between(0.5, 30)),
    noticedAfterMs: () => (chance.happens(0.5) ? chance.between(1, 100) : chance.between(6_000, 15_000)),
    call: (process, label, serve) =>
      new Promise((resolve, reject) => {
        // The dead send nothing.
        if (!process.alive) return
        const fate = net.fate()
        world.trace(() => `${process.name} → ${label}${fate === 'arrives' ? '' : ` (${fate})`}`)
        const lose = () =>
          world.deliver(process, net.noticedAfterMs(), () => reject(new ConnectionLost(`${label}: ${fate}`)))
        if (fate === 'call lost') return lose()
        world.at(net.wayMs(), () => {
          if (!process.alive && chance.happens(0.3)) return
          const answer = (value: Awaited<ReturnType<typeof serve>>) => {
            world.trace(() => `  ${label} of ${process.name}: ${brief(value)}`)
            if (fate === 'reply lost') return lose()
            world.deliver(process, net.wayMs(), () => resolve(value))
          }
          Promise.resolve(serve()).then(answer, (error: unknown) =>
            broken(`the database failed: ${label}: ${String(error)}`),
          )
        })
      }),
  }
  return net
}

function brief(value: unknown): string {
  if (Array.isArray(value)) return `${value.length} rows`
  if (typeof value !== 'object' || value === null) return String(value)
  const words = Object.entries({ ...value, ...('record' in value ? Object(value.record) : {}) })
  return words.flatMap(([name, word]) => (['kind', 'state', 'fence'].includes(name) ? [String(word)] : [])).join(' ')
}
