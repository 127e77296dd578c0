import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Installation = { kind: 'installed' } | { kind: 'refused'; why: string }

const CLUSTERS = '/etc/postgresql'
const NO_CLUSTER_DIRECTORY = '/etc/postgresql-common/createcluster.d'
const NO_CLUSTER = join(NO_CLUSTER_DIRECTORY, 'latchkey-tests.conf')

/**
 * Installs Debian's PostgreSQL packages, and nothing runs afterwards that did not run before: `postgresql-common`
 * comes first so that its configuration can forbid the package to create and start the cluster it makes by default.
 */
export function installPostgres(): Installation {
  const refusal = whyNotPossible()
  if (refusal !== undefined) return { kind: 'refused', why: refusal }
  // On systemd the package's script starts every cluster of the machine, so we stay away where one exists.
  if (hasClusters()) return { kind: 'refused', why: `${CLUSTERS} holds clusters which an installation might start` }

  if (!aptGet('update')) return { kind: 'refused', why: '`apt-get update` failed' }
  if (!install('postgresql-common')) return { kind: 'refused', why: 'postgresql-common could not be installed' }
  mkdirSync(NO_CLUSTER_DIRECTORY, { recursive: true })
  writeFileSync(NO_CLUSTER, 'create_main_cluster = false\n')
  try {
    if (!install('postgresql')) return { kind: 'refused', why: 'the package postgresql could not be installed' }
  } finally {
    rmSync(NO_CLUSTER, { force: true })
  }
  return { kind: 'installed' }
}

const POLICY = '/usr/sbin/policy-rc.d'

/** Another package, whose service is kept from starting by the file that Debian asks before it starts one. */
export function installDebianPackage(name: string): Installation {
  const refusal = whyNotPossible()
  if (refusal !== undefined) return { kind: 'refused', why: refusal }
  const ours = !existsSync(POLICY)
  if (ours) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    if (!install(name) && !(aptGet('update') && install(name))) {
      return { kind: 'refused', why: `the package ${name} could not be installed` }
    }
  } finally {
    if (ours) rmSync(POLICY, { force: true })
  }
  return { kind: 'installed' }
}

function whyNotPossible(): string | undefined {
  if (process.getuid?.() !== 0) return 'installing it needs root'
  return existsSync('/usr/bin/apt-get') ? undefined : 'installing it needs apt-get'
}

function hasClusters(): boolean {
  if (!existsSync(CLUSTERS)) return false
  return readdirSync(CLUSTERS).some(version => readdirSync(join(CLUSTERS, version)).length > 0)
}

function install(name: string): boolean {
  return aptGet('install', '-y', '--no-install-recommends', name)
}

function aptGet(...args: string[]): boolean {
  console.log(`tests: apt-get ${args.join(' ')}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  // Ten minutes: a slow mirror is waited for, a dialogue nobody answers is not.
  const { status, stdout, stderr } = spawnSync('/usr/bin/apt-get', args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 600_000,
    encoding: 'utf8',
  })
  if (status !== 0) console.error(`${stdout}\n${stderr}`.trim())
  return status === 0
}
