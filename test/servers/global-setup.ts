import type { TestProject } from 'vitest/node'
import { installPostgres } from './install-postgres.ts'
import { findPostgres, startPostgres } from './postgres.ts'
import { installMissing } from './brokers/find-program.ts'
import { findChromium } from './browser/chromium.ts'
import { findKafka } from './kafka/kafka-server.ts'
import { findNats } from './nats/nats-server.ts'
import { findRabbitmq } from './rabbitmq/rabbitmq-server.ts'
import { sharedRabbitmq, startSharedRabbitmq } from './rabbitmq/shared-rabbitmq.ts'
import { installMissingRedis } from './redis/redis-binary.ts'
import { announceMissing, announceServer, MAY_INSTALL, needsRedis, needsServer, sharedServer } from './shared-server.ts'

/**
 * One PostgreSQL server and one RabbitMQ for the whole run, and none when no chosen file needs it. Redis, NATS, Kafka and
 * Chromium are only installed: their suites start their own.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const files = project.vitest.state.getPaths()
  if (process.env[MAY_INSTALL] === '1') installFor(files)
  const stopRabbitmq = await rabbitmqFor(files)
  const stopPostgres = await postgresFor(files).catch(async (error: unknown) => {
    await stopRabbitmq()
    throw error
  })
  return async () => {
    await stopPostgres()
    await stopRabbitmq()
  }
}

function installFor(files: readonly string[]): void {
  const needs = (server: string) => files.some(file => file.endsWith(`.${server}.test.ts`))
  if (files.some(needsRedis)) installMissingRedis()
  if (needs('nats')) installMissing(findNats, 'nats-server')
  if (needs('rabbitmq')) installMissing(findRabbitmq, 'rabbitmq-server')
  if (needs('kafka')) installMissing(findKafka, 'kcat')
  if (needs('browser')) installMissing(findChromium, 'chromium')
}

async function rabbitmqFor(files: readonly string[]): Promise<() => Promise<void>> {
  const isNeeded = files.some(file => file.endsWith('.rabbitmq.test.ts'))
  return isNeeded && sharedRabbitmq() === undefined ? startSharedRabbitmq() : async () => {}
}

async function postgresFor(files: readonly string[]): Promise<() => Promise<void>> {
  if (sharedServer().kind === 'running' || !files.some(needsServer)) return async () => {}
  const whyMissing = findOrInstall()
  if (whyMissing !== undefined) {
    announceMissing(whyMissing)
    return async () => {}
  }
  const server = await startPostgres()
  announceServer(server.url)
  return () => server.stop()
}

function findOrInstall(): string | undefined {
  const found = findPostgres()
  if (found.kind === 'found') return undefined
  if (process.env[MAY_INSTALL] !== '1') return `${found.why}; \`npm test\` installs it where it can`
  const installation = installPostgres()
  if (installation.kind === 'refused') return `${found.why}; ${installation.why}`
  const now = findPostgres()
  return now.kind === 'missing' ? now.why : undefined
}
