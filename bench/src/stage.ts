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
  /** Another one after `restart`. */
  server: Server
  /** Starts its server anew, on the same store. */
  restart(): Promise<void>
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
  const started: Player[] = []
  const leftOut: string[] = []
  const close = async () => {
    await Promise.all(started.map(({ server }) => server.stop()))
    await Promise.all(databases.map(database => database.drop()))
    rmSync(directory, { recursive: true, force: true })
  }
  const open = async (subject: Subject): Promise<Player | undefined> => {
    const found = await placeOf(subject, { context, directory, databases })
    if ('missing' in found) {
      leftOut.push(`${subject.name}: ${found.missing}`)
      return undefined
    }
    const { workMs = 0, counted = true } = scenario
    const player = await startPlayer(subject, found, { context, workMs, counted })
    started.push(player)
    return player
  }
  // All at once: a start is mostly a wait, for the process or for the disk.
  const opened = await Promise.allSettled(scenario.subjects.map(subjectOf).map(open))
  const failed = opened.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') {
    await close()
    throw failed.reason
  }
  const players = opened.flatMap(result => (result.status === 'fulfilled' && result.value ? [result.value] : []))
  return { players, leftOut, close }
}

interface Placing {
  readonly context: Context
  readonly directory: string
  readonly databases: Database[]
}

async function placeOf({ id, store }: Subject, placing: Placing): Promise<Place | { missing: string }> {
  if (store === 'postgres') return inPostgres(placing)
  if (store === 'redis' || store === 'tiered') {
    const redis = await placing.context.redis()
    if ('missing' in redis) return redis
    const place = redis.freshDatabase()
    if (store === 'redis') return { place, databaseUs: () => processUs(redis.pid) }
    // The time of the database alone: the cache is there to spare it.
    const database = await inPostgres(placing)
    return { ...database, place: `${database.place} ${place}` }
  }
  return { place: join(placing.directory, `${id}.db`), databaseUs: () => 0 }
}

async function inPostgres({ context, databases }: Placing): Promise<Place> {
  const server = await context.postgres()
  const database = await createDatabaseOn(server.url)
  databases.push(database)
  return { place: database.url, databaseUs: () => postgresUs(server.pid, server.dataDir) }
}

async function startPlayer(
  subject: Subject,
  { place, databaseUs }: Place,
  { context, workMs, counted }: { context: Context; workMs: number; counted: boolean },
): Promise<Player> {
  const peerFile = subject.peer === undefined ? undefined : pathToFileURL(join(context.peers(), subject.peer)).href
  const start = () => startServer(context.programs.server, { subject, place, workMs, peerFile, counted })
  const restart = async () => {
    await player.server.stop()
    player.server = await start()
  }
  const measured = { runs: [], faults: [], expected: 0, proof: undefined }
  const player: Player = { subject, server: await start(), restart, place, databaseUs, ...measured }
  return player
}
