/** Opens the store that the settings name. */
import type { Context } from '../program/context.ts'
import { usage } from '../program/exit.ts'
import { storeUrl } from '../config/secrets.ts'
import type { OpenedStore } from './opened.ts'
import { openPostgres } from './postgres.ts'
import { openRedis } from './redis.ts'
import { openSqlite } from './sqlite.ts'

export interface OpenOptions {
  /** A SQLite file that does not exist is made. Otherwise a wrong path would be answered with an empty store. */
  readonly create?: boolean
}

/** `work` has the store until it ends. */
export async function withStore<T>(
  context: Context,
  work: (opened: OpenedStore) => Promise<T>,
  options: OpenOptions = {},
): Promise<T> {
  const opened = await openStore(context, options)
  try {
    return await work(opened)
  } finally {
    await opened.close()
  }
}

export async function openStore(context: Context, { create = false }: OpenOptions = {}): Promise<OpenedStore> {
  const url = storeUrl(context.settings, context.env)
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  switch (scheme) {
    case 'postgres':
    case 'postgresql':
      return openPostgres(context, url)
    case 'sqlite':
    case 'file':
      return openSqlite(context, url, create)
    case 'redis':
    case 'rediss':
      return openRedis(context, url)
    default:
      throw usage(
        `the address of the store must begin with postgres://, sqlite: or redis:// (got ${scheme ?? 'none of them'})`,
      )
  }
}
