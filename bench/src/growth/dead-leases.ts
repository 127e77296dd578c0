/** Leases whose owner died, made as life makes them: a process is killed while its handlers work. */
import { setTimeout as delay } from 'node:timers/promises'
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import type { Context } from '../context.ts'
import { startServer } from '../server/server-process.ts'
import { subjectOf } from '../subjects.ts'

/** Longer than any run: these handlers never end by themselves. */
const endlessMs = 3_600_000

export async function killOwners(place: string, count: number, { programs }: Context): Promise<void> {
  const argument = { subject: subjectOf('postgres'), place, workMs: endlessMs, peerFile: undefined, counted: false }
  const server = await startServer(programs.server, argument)
  const abandoned = new AbortController()
  const requests = Array.from({ length: count }, (_, n) =>
    fetch(`http://127.0.0.1:${server.port}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `dead-${n}` },
      body: '{"sku":"tea"}',
      signal: abandoned.signal,
    }).catch(() => undefined),
  )
  while ((await server.runs()) < count) await delay(50)
  await server.kill()
  abandoned.abort()
  await Promise.all(requests)
}

export interface SweepCost {
  readonly swept: number
  /** The first pass looks at every row once; later ones at what is younger than the mark. */
  readonly firstPassMs: number
  readonly laterPassesMs: readonly number[]
}

/** The default lease; then the owner counts as dead. */
const leaseMs = 30_000

export async function sweepDead(
  place: string,
  { diedAtMs, passes }: { diedAtMs: number; passes: number },
): Promise<SweepCost> {
  const pool = new pg.Pool({ connectionString: place, max: 1 })
  const { sweep } = postgresStore({ pool })
  const pass = async () => {
    const startedAt = performance.now()
    const swept = await sweep({ limit: 100 })
    return { ms: performance.now() - startedAt, swept: swept.length }
  }
  try {
    await delay(Math.max(0, diedAtMs + leaseMs + 500 - performance.now()))
    const first = await pass()
    const laterPassesMs: number[] = []
    for (let n = 0; n < passes; n++) laterPassesMs.push((await pass()).ms)
    return { swept: first.swept, firstPassMs: first.ms, laterPassesMs }
  } finally {
    await pool.end()
  }
}
