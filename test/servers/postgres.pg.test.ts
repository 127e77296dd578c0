import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import { describeOwnPostgres, describePostgres } from './describe-postgres.ts'
import { startPostgres } from './postgres.ts'
import { ownsPort, processesInside, until } from './processes.ts'
import { createTestDatabase } from './test-database.ts'

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describeOwnPostgres(
  'a private PostgreSQL server',
  own => {
    const started: { stop(): Promise<void> }[] = []
    afterEach(async () => {
      for (const server of started.splice(0)) await server.stop()
    })

    it('listens in its own process', () => {
      expect(ownsPort(own.server.pid, own.server.port)).toBe('yes')
    })

    it('writes to the disk for real and takes the settings it was given', async () => {
      const text = "select current_setting('fsync') as fsync, current_setting('max_connections') as connections"
      expect(await query(own.server.url, text)).toEqual([{ fsync: 'on', connections: '31' }])
    })

    it('keeps committed rows over kill -9 and restart, at the same address', async () => {
      const { url, pid, dataDir } = own.server
      await query(url, 'create table survivors (id int)')
      await query(url, 'insert into survivors select generate_series(1, 1000)')
      await own.server.kill()
      expect(processesInside(dataDir)).toEqual([])
      await expect(query(url, 'select 1')).rejects.toThrow('ECONNREFUSED')
      await own.server.restart()
      expect(own.server.url).toBe(url)
      expect(own.server.pid).not.toBe(pid)
      expect(await query(url, 'select count(*)::int as rows from survivors')).toEqual([{ rows: 1000 }])
    })

    it('restarts in order while it runs', async () => {
      const { url, pid } = own.server
      await own.server.restart()
      expect(own.server.pid).not.toBe(pid)
      expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
    })

    it('leaves no process and no directory after stop, and a second server has another port', async () => {
      const second = await startPostgres()
      started.push(second)
      expect(second.port).not.toBe(own.server.port)
      expect(processesInside(second.dataDir).length).toBeGreaterThan(1)
      await second.stop()
      expect(processesInside(second.dataDir)).toEqual([])
      expect(existsSync(dirname(second.dataDir))).toBe(false)
      expect(await query(own.server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    })

    it('ends with the process that started it, also when that is killed', async () => {
      const script = fileURLToPath(new URL('start-and-wait.ts', import.meta.url))
      const starter = spawn(process.execPath, ['--import', 'tsx', script], { stdio: ['ignore', 'pipe', 'inherit'] })
      const [line] = await once(starter.stdout, 'data')
      const dataDir = String(line).trim()
      expect(processesInside(dataDir).length).toBeGreaterThan(1)
      starter.kill('SIGKILL')
      expect(await until(() => !existsSync(dirname(dataDir)), 30_000)).toBe(true)
      expect(processesInside(dataDir)).toEqual([])
    })
  },
  { settings: { max_connections: '31' } },
)

it('does not take the port of another process for its own', async () => {
  const stranger = createServer().listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  const address = stranger.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const child = spawn('sleep', ['60'])
  expect(ownsPort(process.pid, address.port)).toBe('yes')
  expect(ownsPort(child.pid ?? 0, address.port)).toBe('no')
  child.kill('SIGKILL')
  stranger.close()
})

describePostgres('a test database', database => {
  it('is empty and apart from the next one', async () => {
    const other = await createTestDatabase()
    await query(other.url, 'create table here (id int)')
    const count = "select count(*)::int as tables from pg_tables where tablename = 'here'"
    expect(await query(database.url, count)).toEqual([{ tables: 0 }])
    expect(await query(other.url, count)).toEqual([{ tables: 1 }])
    await other.drop()
    await expect(query(other.url, 'select 1')).rejects.toThrow('does not exist')
  })
})
