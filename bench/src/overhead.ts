/** What Latchkey costs: each subject against the same server without it, interleaved, so that a noisy machine hits all alike. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabaseOn, type Database } from './database.ts'
import { type LoadResult, runLoad } from './load.ts'
import { type Proof, type Server, startServer } from './server-process.ts'
import { type Scenario, type Subject, subjects } from './subjects.ts'

export interface OverheadOptions {
  readonly scenario: Scenario
  readonly repetitions: number
  readonly seconds: number
  readonly postgresUrl: string
}

export interface SubjectResult {
  readonly subject: string
  readonly against: string
  readonly leftOut: string | undefined
  readonly runs: readonly LoadResult[]
  /** Requests per second over those of `against`, per repetition. */
  readonly ratios: readonly number[]
  readonly proof: { readonly acknowledged: number; readonly stored: Proof } | undefined
  readonly settings: string
}

interface Running {
  readonly subject: Subject
  readonly server: Server
  readonly runs: LoadResult[]
  acknowledgedKeys: number
}

export async function measureOverhead(options: OverheadOptions): Promise<SubjectResult[]> {
  const { scenario, repetitions } = options
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-bench-'))
  const databases: Database[] = []
  const measured = subjects.filter(subject => scenario.leftOut(subject) === undefined)
  const running: Running[] = []
  try {
    for (const subject of measured) running.push(await startSubject(subject, { ...options, directory, databases }))
    for (const run of running) await warmUp(run, options)
    for (let repetition = 0; repetition < repetitions; repetition++) {
      // Every second repetition runs backwards, so that nobody always comes after the same neighbour.
      const order = repetition % 2 === 0 ? running : running.toReversed()
      for (const run of order) await measure(run, repetition, options)
    }
    return await Promise.all(subjects.map(subject => resultOf(subject, running, scenario)))
  } finally {
    await Promise.all(running.map(({ server }) => server.stop()))
    await Promise.all(databases.map(database => database.drop()))
    rmSync(directory, { recursive: true, force: true })
  }
}

interface Starting extends OverheadOptions {
  readonly directory: string
  readonly databases: Database[]
}

async function startSubject(
  subject: Subject,
  { scenario, postgresUrl, directory, databases }: Starting,
): Promise<Running> {
  let place = join(directory, `${subject.name.replaceAll(' ', '-')}.db`)
  if (subject.store === 'postgres') {
    const database = await createTestDatabaseOn(postgresUrl)
    databases.push(database)
    place = database.url
  }
  const server = await startServer({ kind: subject.kind, store: subject.store, place, workMs: scenario.workMs })
  return { subject, server, runs: [], acknowledgedKeys: 0 }
}

/** Compiles the hot paths, and completes the keys that a replay run repeats. */
async function warmUp(run: Running, { scenario }: OverheadOptions): Promise<void> {
  const requests = scenario.replayedKeys > 0 ? scenario.replayedKeys : 200
  const key = scenario.replayedKeys > 0 ? (n: number) => `replayed-${n}` : (n: number) => `warm-${n}`
  const { acknowledged } = await runLoad({
    port: run.server.port,
    connections: 8,
    seconds: 60,
    key,
    requestsMax: requests,
  })
  run.acknowledgedKeys += acknowledged
}

async function measure(run: Running, repetition: number, { scenario, seconds }: OverheadOptions): Promise<void> {
  const { replayedKeys, connections } = scenario
  const key =
    replayedKeys > 0 ? (n: number) => `replayed-${n % replayedKeys}` : (n: number) => `r${repetition}-${scramble(n)}`
  const result = await runLoad({ port: run.server.port, connections, seconds, key })
  run.runs.push(result)
  if (replayedKeys === 0) run.acknowledgedKeys += result.acknowledged
}

/** Keys without locality: real ones are random. */
function scramble(n: number): string {
  return `${(Math.imul(n + 1, 0x9e3779b1) >>> 0).toString(36)}-${n}`
}

async function resultOf(subject: Subject, running: readonly Running[], scenario: Scenario): Promise<SubjectResult> {
  const { name, against } = subject
  const own = running.find(run => run.subject.name === name)
  // A replay of an atomic operation does no business work: it is compared with the server that does none.
  const base = running.find(run => run.subject.name === (scenario.replayedKeys > 0 ? 'bare' : against))
  const described = { subject: name, against: base?.subject.name ?? against, leftOut: scenario.leftOut(subject) }
  if (own === undefined) return { ...described, runs: [], ratios: [], proof: undefined, settings: '' }
  const ratios = own.runs.map((run, i) => run.requestsPerSecond / (base?.runs[i]?.requestsPerSecond ?? Number.NaN))
  const stored = subject.kind === 'guarded' || subject.kind === 'atomic' ? await own.server.proof() : undefined
  const proof = stored && { acknowledged: own.acknowledgedKeys, stored }
  return { ...described, runs: own.runs, ratios, proof, settings: await own.server.settings() }
}
