import { findRabbitmq, startRabbitmq } from './rabbitmq-server.ts'

const URL_NAME = 'LATCHKEY_TEST_RABBITMQ_URL'
const MISSING_NAME = 'LATCHKEY_TEST_RABBITMQ_MISSING'

/** The one RabbitMQ of a test run, as handed to the test files by the environment: it takes ten seconds to start. */
export type SharedRabbitmq = { kind: 'running'; url: string } | { kind: 'missing'; why: string }

/** Undefined: no chosen file needs it. */
export function sharedRabbitmq(): SharedRabbitmq | undefined {
  const url = process.env[URL_NAME]
  if (url !== undefined) return { kind: 'running', url }
  const why = process.env[MISSING_NAME]
  return why === undefined ? undefined : { kind: 'missing', why }
}

/** Returns what stops it. */
export async function startSharedRabbitmq(): Promise<() => Promise<void>> {
  const found = findRabbitmq()
  if (found.kind === 'missing') {
    process.env[MISSING_NAME] = found.why
    return async () => {}
  }
  const server = await startRabbitmq()
  process.env[URL_NAME] = server.url
  return () => server.stop()
}
