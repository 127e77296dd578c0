import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { handleOf } from '../../src/stores/sqlite/connection/handle.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { identity } from './requests.ts'

const hammer = fileURLToPath(new URL('./hammer.ts', import.meta.url))
const keys = 400

interface Hammer {
  readonly child: ChildProcess
  readonly lines: string[]
  /** From its start, because one that is done by itself closes before it is killed. */
  readonly closed: Promise<unknown>
  /** What went wrong in it. */
  errors: string
}

let directory: string
let path: string
let hammers: Hammer[]

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'latchkey-processes-'))
  path = join(directory, 'data.db')
  hammers = []
  const outside = new Database(path)
  outside.exec('PRAGMA journal_mode = WAL; CREATE TABLE orders (value TEXT NOT NULL) STRICT')
  outside.close()
})

afterEach(async () => {
  for (const { child } of hammers) child.kill('SIGKILL')
  await rm(directory, { recursive: true })
})

function start({ keyCount = keys, atATime = 4 } = {}): Hammer {
  const child = spawn(process.execPath, ['--import', 'tsx', hammer, path, String(keyCount), String(atATime)])
  const started: Hammer = { child, lines: [], closed: once(child, 'close'), errors: '' }
  let rest = ''
  child.stdout.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split('\n')
    rest = parts.pop() ?? ''
    started.lines.push(...parts)
  })
  child.stderr.on('data', (chunk: Buffer) => (started.errors += chunk.toString()))
  hammers.push(started)
  return started
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = Date.now() + 40_000
  while (!condition()) {
    if (Date.now() > deadlineMs) throw new Error('waited 40 s in vain')
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

async function kill({ child, closed }: Hammer): Promise<void> {
  child.kill('SIGKILL')
  await closed
}

/** [key, claimId] of every line that begins with this word, of all processes. */
function said(word: string): (readonly [number, string])[] {
  return hammers
    .flatMap(each => each.lines)
    .map(line => line.split(' '))
    .filter(([first]) => first === word)
    .map(([, key, claimId]) => [Number(key), claimId ?? ''] as const)
}

it('gives each key one winner among four processes on one file, some killed with -9, and loses no acknowledged answer', async () => {
  const victims = [start(), start()]
  const survivors = [start(), start()]
  for (const [turn, victim] of victims.entries()) {
    // In the middle of its work, at another place each time.
    await until(() => victim.lines.length > 10 + 25 * turn || victim.lines.includes('end'))
    await kill(victim)
    survivors.push(start())
  }
  await until(() => survivors.every(({ child }) => child.exitCode !== null))
  expect(survivors.map(({ errors }) => errors)).toEqual(['', '', '', ''])
  await until(() => survivors.every(({ lines }) => lines.includes('end')))

  const won = said('won').map(([key]) => key)
  expect(new Set(won).size).toBe(won.length)
  expect(said('lost')).toEqual([])
  const done = said('done')
  expect(new Set(done.map(([key]) => key)).size).toBe(done.length)
  expect(done.length).toBeGreaterThan(keys - 20)

  const store = sqliteStore({ path, open: file => new Database(file) })
  for (const [key, claimId] of done) {
    const record = await store.read(identity(key).id)
    expect([record?.state, record?.claimId, record?.fence]).toEqual(['completed', claimId, 1])
    expect(Buffer.from(record?.outcome?.body ?? []).toString()).toBe(claimId)
  }
  await store.close()

  const file = handleOf(new Database(path))
  expect(file.query('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  // An order exists exactly where its key row does: both or neither survived the kills.
  const orders = file.query('SELECT value FROM orders').map(row => String(row.value))
  const rows = file.query(`SELECT id, claim_id FROM latchkey_keys WHERE state = 2`)
  const recorded = rows.map(row => `${Number(String(row.id).slice(-12))} ${String(row.claim_id)}`)
  const odd = (text: string) => Number(text.split(' ')[0]) % 2 === 1
  expect(orders.toSorted()).toEqual(recorded.filter(odd).toSorted())
  expect(orders.length).toBe(keys / 2)
  file.close()
})

it('loses no acknowledged claim or answer when it is killed with -9 while 64 writers share their commits', async () => {
  for (const round of [0, 1, 2]) {
    const victim = start({ keyCount: 20_000, atATime: 64 })
    // In the middle of its work, at another place each time; what the killed ones before it did, it finds done.
    await until(() => victim.lines.length > 150 + 70 * round || victim.child.exitCode !== null)
    await kill(victim)
    expect([victim.errors, victim.lines.includes('end')]).toEqual(['', false])
  }
  const won = said('won')
  const done = said('done')
  expect(done.length).toBeGreaterThan(100)
  expect(new Set(won.map(([key]) => key)).size).toBe(won.length)
  expect(new Set(done.map(([key]) => key)).size).toBe(done.length)

  const store = sqliteStore({ path, open: file => new Database(file) })
  for (const [key, claimId] of won) expect((await store.read(identity(key).id))?.claimId).toBe(claimId)
  for (const [key, claimId] of done) {
    const record = await store.read(identity(key).id)
    expect([record?.state, Buffer.from(record?.outcome?.body ?? []).toString()]).toEqual(['completed', claimId])
  }
  await store.close()
  const file = handleOf(new Database(path))
  expect(file.query('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  file.close()
})

it('opens a file that another process keeps locked for a moment', async () => {
  const locks = `const file = new (require('libsql'))(process.argv[1])
    file.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)')
    console.log('locked')
    process.stdin.once('data', () => setTimeout(() => file.close(), 500))`
  const here = fileURLToPath(new URL('.', import.meta.url))
  const holder = spawn(process.execPath, ['-e', locks, path], { cwd: here, stdio: ['pipe', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  // What others meet while it is locked: without patience, the opening would.
  const impatient = new Database(path)
  expect(() => impatient.exec('SELECT count(*) FROM orders')).toThrow('locked')
  impatient.close()
  // Opening blocks this process, so the other one lets go by itself.
  holder.stdin.end('soon')
  const store = sqliteStore({ path, open: file => new Database(file) })
  await store.migrate()
  await store.close()
})
