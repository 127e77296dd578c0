import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { sharedServer } from './shared-server.ts'

export type TestDatabase = { url: string; name: string; drop(): Promise<void> }

/** A fresh, empty database on the shared server. A suite that keeps to its own cannot be disturbed by another. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const server = sharedServer()
  if (server.kind !== 'running') {
    throw new Error(
      'no shared PostgreSQL server: use describePostgres in a file named *.pg.test.ts or *.system.test.ts',
    )
  }
  const name = `t_${randomBytes(8).toString('hex')}`
  await execute(server.url, `create database ${name}`)
  const url = new URL(server.url)
  url.pathname = `/${name}`
  return { url: url.href, name, drop: () => execute(server.url, `drop database if exists ${name} with (force)`) }
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
