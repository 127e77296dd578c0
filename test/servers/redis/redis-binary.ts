import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installDebianPackage } from '../install-postgres.ts'

/** The oldest major version the tests may run on: scripts with flags begin there. */
const OLDEST_MAJOR = 7

export type FoundRedis = { kind: 'found'; redis: string; version: string } | { kind: 'missing'; why: string }

/** On PATH, so that a person decides which server is tested. */
export function findRedis(): FoundRedis {
  const files = (process.env['PATH'] ?? '').split(delimiter).map(directory => join(directory, 'redis-server'))
  const redis = files.find(file => existsSync(file))
  if (redis === undefined) return { kind: 'missing', why: 'no redis-server on PATH' }
  const version = /v=(\d+[^\s]*)/.exec(execFileSync(redis, ['--version'], { encoding: 'utf8', timeout: 10_000 }))?.[1]
  if (version !== undefined && Number.parseInt(version, 10) >= OLDEST_MAJOR) return { kind: 'found', redis, version }
  return { kind: 'missing', why: `Redis ${OLDEST_MAJOR}.0 or newer is needed, found ${version ?? 'one of no version'}` }
}

/** Once for a run, before its files: two installations at a time would lock each other out. */
export function installMissingRedis(): void {
  if (findRedis().kind === 'found') return
  const installation = installDebianPackage('redis-server')
  if (installation.kind === 'refused') console.error(`tests: no redis-server, because ${installation.why}`)
}
