/** Whether a test file may ask for a server. All others run without any, and make up `npm run test:fast`. */
export const SERVER_FILES: readonly string[] = [
  '**/*.pg.test.ts',
  '**/*.redis.test.ts',
  '**/*.nats.test.ts',
  '**/*.rabbitmq.test.ts',
  '**/*.kafka.test.ts',
  '**/*.browser.test.ts',
  '**/*.system.test.ts',
]

/** Tests that take long, such as failovers: only `npm run proof` runs them. */
export const PROOF_FILES = '**/*.proof.*test.ts'

/** Set to "1" by the test runner: a missing server may be installed. A bare `vitest` only looks for one. */
export const MAY_INSTALL = 'LATCHKEY_TEST_INSTALL'

const URL_NAME = 'LATCHKEY_TEST_POSTGRES_URL'
const MISSING_NAME = 'LATCHKEY_TEST_POSTGRES_MISSING'

/** The one PostgreSQL server of a test run, as handed to the test files by the environment. */
export type SharedServer =
  | { kind: 'running'; url: string }
  | { kind: 'missing'; why: string }
  | { kind: 'not-asked-for' }

export function sharedServer(): SharedServer {
  const url = process.env[URL_NAME]
  if (url !== undefined) return { kind: 'running', url }
  const why = process.env[MISSING_NAME]
  if (why !== undefined) return { kind: 'missing', why }
  return { kind: 'not-asked-for' }
}

export function announceServer(url: string): void {
  process.env[URL_NAME] = url
}

export function announceMissing(why: string): void {
  process.env[MISSING_NAME] = why
}

/** Whether it needs the shared PostgreSQL. A file that needs Redis, NATS or Kafka starts its own. */
export function needsServer(file: string): boolean {
  return file.endsWith('.pg.test.ts') || file.endsWith('.system.test.ts')
}

export function needsRedis(file: string): boolean {
  return file.endsWith('.redis.test.ts')
}
