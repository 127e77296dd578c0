/** A fresh database on a running PostgreSQL server, for one subject. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'

export interface Database {
  readonly url: string
  drop(): Promise<void>
}

export async function createDatabaseOn(serverUrl: string): Promise<Database> {
  const name = `bench_${randomUUID().replaceAll('-', '')}`
  await onServer(serverUrl, `create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => onServer(serverUrl, `drop database ${name} with (force)`) }
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(statement)
  await client.end()
}
