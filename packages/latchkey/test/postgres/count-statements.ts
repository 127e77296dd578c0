import type pg from 'pg'

/** Counts the messages that the pool's clients send from now on, but for those that prepare a statement of ours. */
export function countStatements(pool: pg.Pool): { count: number } {
  const statements = { count: 0 }
  pool.on('connect', client => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    Reflect.set(client, 'query', (...args: unknown[]) => {
      if (!prepares(args[0])) statements.count += 1
      return query(...args)
    })
  })
  return statements
}

/** A message of ours that prepares a statement has its name; one that sends statements has none. */
function prepares(query: unknown): boolean {
  return typeof query === 'object' && query !== null && 'submit' in query && 'name' in query && query.name !== ''
}
