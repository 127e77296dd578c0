import { afterAll, beforeAll, describe, it } from 'vitest'
import { findPostgres, startPostgres } from './postgres.ts'
import type { PostgresServer } from './postgres.ts'
import { sharedServer } from './shared-server.ts'
import { createTestDatabase } from './test-database.ts'
import type { TestDatabase } from './test-database.ts'

/** A suite on the run's shared server with a database of its own. `url` is there inside hooks and tests only. */
export function describePostgres(name: string, define: (database: { readonly url: string }) => void): void {
  describeWith(name, whyNoSharedServer(), () => {
    let database: TestDatabase | undefined
    beforeAll(async () => {
      database = await createTestDatabase()
    })
    afterAll(() => database?.drop())
    define({
      get url() {
        return present(database, 'the database').url
      },
    })
  })
}

/** A suite with a whole server of its own, to be killed and restarted at will. */
export function describeOwnPostgres(
  name: string,
  define: (own: { readonly server: PostgresServer }) => void,
  options: { settings?: Record<string, string> } = {},
): void {
  const found = findPostgres()
  describeWith(name, found.kind === 'missing' ? found.why : undefined, () => {
    let server: PostgresServer | undefined
    beforeAll(async () => {
      server = await startPostgres(options)
    }, 120_000)
    afterAll(() => server?.stop())
    define({
      get server() {
        return present(server, 'the server')
      },
    })
  })
}

/** The suite, or what stands in its place where its server is missing. */
export function describeWith(name: string, whyMissing: string | undefined, define: () => void): void {
  if (whyMissing === undefined) {
    describe(name, define)
    return
  }
  // On a person's machine a missing server is reported, in CI it is a failure: a green run there means all was tested.
  if (!inCI()) {
    describe.skip(`${name} [skipped: ${whyMissing}]`, define)
    return
  }
  describe(name, () => {
    it('finds its server', () => {
      throw new Error(`CI needs every server: ${whyMissing}`)
    })
  })
}

function whyNoSharedServer(): string | undefined {
  const server = sharedServer()
  switch (server.kind) {
    case 'running':
      return undefined
    case 'missing':
      return server.why
    case 'not-asked-for':
      // Not a reason to skip: without the name no run would ever start a server for this file.
      throw new Error('describePostgres needs a file named *.pg.test.ts or *.system.test.ts')
  }
}

function inCI(): boolean {
  return !['', '0', 'false'].includes(process.env['CI'] ?? '')
}

function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} exists inside hooks and tests only: read it there`)
  return value
}
