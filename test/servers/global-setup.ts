import type { TestProject } from 'vitest/node'
import { installPostgres } from './install-postgres.ts'
import { findPostgres, startPostgres } from './postgres.ts'
import { installMissingRedis } from './redis/redis-binary.ts'
import { announceMissing, announceServer, MAY_INSTALL, needsRedis, needsServer, sharedServer } from './shared-server.ts'

/** One PostgreSQL server for the whole run, and none when no chosen file needs it. Redis is only installed: its suites start their own. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (sharedServer().kind === 'running') return undefined
  const files = project.vitest.state.getPaths()
  if (process.env[MAY_INSTALL] === '1' && files.some(needsRedis)) installMissingRedis()
  if (!files.some(needsServer)) return undefined

  const whyMissing = findOrInstall()
  if (whyMissing !== undefined) {
    announceMissing(whyMissing)
    return undefined
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
