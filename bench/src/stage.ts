/** The servers of a scenario, each with a store of its own, all alive at once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Context } from './context.ts'
import { postgresUs, processUs } from './machine/cpu.ts'
import { createDatabaseOn, type Database } from './machine/database.ts'
import type { Run, Scenario } from './scenario.ts'
import { type Server, startServer } from './server/server-process.ts'
import { type Subject, subjectOf } from './subjects.ts'

export interface Player {
  readonly subject: Subject
  readonly server: Server
  /** The address of its store. */
  readonly place: string
  /** Processor time of its database so far; 0 without one. */
  databaseUs(): number
  readonly runs: Run[]
  readonly faults: string[]
  /** Keys that were acknowledged so far, so the rows that must be there. */
  expected: number
  proof: { acknowledged: number; rows: number; completed: number } | undefined
}

export interface Stage {
  readonly players: readonly Player[]
  readonly leftOut: readonly string[]
  close(): Promise<void>
}

export interface StageOptions extends Pick<Scenario, 'subjects' | 'workMs'> {
  /** Whether rows are counted after every run. Default true; counting ten million takes longer than the run. */
  readonly counted?: boolean
}

interface Place {
  readonly place: string
  databaseUs(): number
}

export async function openStage(scenario: StageOptions, context: Context): Promise<Stage> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-bench-'))
  const databases: Database[] = []
  const players: Player[] = []
  const leftOut: string[] = []
  const close = async () => {
    await Promise.all(players.map(({ server }) => server.stop()))
    await Promise.all(databases.map(database => database.drop()))
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    for (const subject of scenario.subjects.map(subjectOf)) {
      const found = await placeOf(subject, { context, directory, databases })
      if ('missing' in found) leftOut.push(`${subject.name}: ${found.missing}`)
      else
        players.push(
          await startPlayer(subject, found, {
            context,
            workMs: scenario.workMs ?? 0,
            counted: scenario.counted ?? true,
          }),
        )
    }
    return { players, leftOut, close }
  } catch (error) {
    await close()
    throw error
  }
}

interface Placing {
  readonly context: Context
  readonly directory: string
  readonly databases: Database[]
}

async function placeOf(
  { id, store }: Subject,
  { context, directory, databases }: Placing,
): Promise<Place | { missing: string }> {
  if (store === 'postgres') {
    const server = await context.postgres()
    const database = await createDatabaseOn(server.url)
    databases.push(database)
    return { place: database.url, databaseUs: () => postgresUs(server.pid, server.dataDir) }
  }
  if (store === 'redis') {
    const redis = await context.redis()
    if ('missing' in redis) return redis
    return { place: redis.freshDatabase(), databaseUs: () => processUs(redis.pid) }
  }
  return { place: join(directory, `${id}.db`), databaseUs: () => 0 }
}

async function startPlayer(
  subject: Subject,
  { place, databaseUs }: Place,
  { context, workMs, counted }: { context: Context; workMs: number; counted: boolean },
): Promise<Player> {
  const peerFile = subject.peer === undefined ? undefined : pathToFileURL(join(context.peers(), subject.peer)).href
  const server = await startServer(context.programs.server, { subject, place, workMs, peerFile, counted })
  return { subject, server, place, databaseUs, runs: [], faults: [], expected: 0, proof: undefined }
}
