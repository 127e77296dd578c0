/** Rows and lines agree, whenever the process dies. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { AuditLine, Store } from 'latchkey'
import { forkProgram } from '../../../../test/programs/program.ts'
import type { RawDatabase } from '../sealed/databases.ts'
import type { FromTrail, TrailArgument } from './trail-process.ts'

const patienceMs = 120_000

export function killedTrailCases(openDatabase: () => Promise<RawDatabase>, endLease: () => Promise<void>): void {
  let raw: RawDatabase
  beforeEach(async () => {
    raw = await openDatabase()
  })
  afterEach(() => raw.close())

  it(
    'has a completed line for each completed row and no other, after processes were killed between completions',
    async () => {
      for (const [turn, after] of [40, 95, 151].entries()) {
        await killedAfter({ place: raw.place, name: `turn ${turn}` }, after)
        const rows = await completedRows(raw.store)
        const lines = (await allLines(raw.store)).filter(({ what }) => what === 'completed')
        expect(rows.length).toBeGreaterThan(after)
        expect(lines.map(({ id, fence }) => `${id} ${fence}`).toSorted()).toEqual(rows.toSorted())
      }
    },
    patienceMs,
  )

  it(
    'hands every line to the sink at least once, when the processes that do so are killed',
    async () => {
      await killedAfter({ place: raw.place, name: 'work' }, 100)
      const wanted = (await allLines(raw.store)).map(({ lineId }) => lineId)
      const directory = mkdtempSync(join(tmpdir(), 'latchkey-sink-'))
      const sinkFile = join(directory, 'lines')
      for (const after of [1, 20, 40]) {
        await killedAfter({ place: raw.place, name: 'sink', sinkFile }, after)
        await endLease()
      }
      expect((await allLines(raw.store)).length).toBeGreaterThan(0)
      const child = await started({ place: raw.place, name: 'sink', sinkFile })
      const until = performance.now() + patienceMs / 2
      while ((await allLines(raw.store)).length > 0 && performance.now() < until) {
        await new Promise(resolve => setTimeout(resolve, 50))
      }
      await killed(child)
      const handed = readFileSync(sinkFile, 'utf8').trim().split('\n')
      rmSync(directory, { recursive: true })
      expect([...new Set(handed)].toSorted()).toEqual(wanted.toSorted())
    },
    patienceMs,
  )
}

async function completedRows(store: Store): Promise<readonly string[]> {
  const rows: string[] = []
  for (let after: string | undefined; ;) {
    const page = await store.list({ state: 'completed', limit: 1_000, ...(after === undefined ? {} : { after }) })
    rows.push(...page.records.map(({ id, fence }) => `${id} ${fence}`))
    if (page.next === undefined) return rows
    after = page.next
  }
}

async function allLines(store: Store): Promise<readonly AuditLine[]> {
  const lines: AuditLine[] = []
  for (let after: string | undefined; ;) {
    const page = await store.auditRecords?.page({ limit: 1_000, ...(after === undefined ? {} : { after }) })
    lines.push(...(page?.lines ?? []))
    if (page?.next === undefined) return lines
    after = page.next
  }
}

function started(argument: TrailArgument): Promise<ChildProcess> {
  return forkProgram(new URL('./trail-process.ts', import.meta.url), [JSON.stringify(argument)])
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Killed at once when it says that it has done so much: others of its calls are under way. */
async function killedAfter(argument: TrailArgument, count: number): Promise<void> {
  const child = await started(argument)
  await new Promise<void>((resolve, reject) => {
    child.on('message', (message: FromTrail) => {
      if (message.count > count) resolve()
    })
    child.once('exit', code => reject(new Error(`the process ended by itself with ${code}`)))
  })
  await killed(child)
}
