// What users install with us is what was reviewed: few dependencies, each argued for, at one version, with nothing behind it.
//
// The lock file fixes what the repository itself runs: every package has its digest. Only packages for other platforms have none,
// because a registry mirror may not serve them (tools/complete-lock.ts); they are not installed where they have no digest.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readText } from './files.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { listPackages, readManifest } from './library.ts'

const DECISION = 'docs/decisions/0003-dependencies.md'
const LOCK = 'package-lock.json'

interface LockEntry {
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly optional?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
}

type Entries = Readonly<Record<string, LockEntry>>

export async function checkDependencies({ root }: CheckOptions): Promise<Finding[]> {
  const entries = readEntries(root)
  const decided = existsSync(join(root, DECISION)) ? readText(root, DECISION) : ''
  return [
    ...listPackages(root).flatMap(folder => runtimeFindings({ root, folder, entries, decided })),
    ...undigested(entries),
  ]
}

interface Installed {
  readonly root: string
  readonly folder: string
  readonly entries: Entries
  readonly decided: string
}

function runtimeFindings({ root, folder, entries, decided }: Installed): Finding[] {
  const file = `${folder}/package.json`
  return Object.entries(readManifest(root, folder).dependencies ?? {}).flatMap(([name, version]) => {
    const faults = [
      decided.includes(`| \`${name}\` |`) ? '' : `is not in ${DECISION}: argue for it there, or do without it`,
      /^\d+\.\d+\.\d+$/.test(version)
        ? ''
        : `has the range ${version}: name one version, so that a release of theirs reaches users through a release of ours`,
      ...lockFaults(entries[`node_modules/${name}`], version),
    ]
    return faults
      .filter(fault => fault !== '')
      .map(fault => ({ file, message: `the runtime dependency ${name} ${fault}` }))
  })
}

function lockFaults(entry: LockEntry | undefined, version: string): string[] {
  if (entry === undefined) return [`is not in ${LOCK}: run \`npm install\``]
  const behind = Object.keys(entry.dependencies ?? {})
  return [
    entry.version === version ? '' : `is ${entry.version} in ${LOCK}: run \`npm install\``,
    behind.length === 0 ? '' : `brings ${behind.join(', ')}: choose one that has no dependencies`,
    entry.hasInstallScript === true ? 'runs a script when it is installed: choose one that does not' : '',
  ]
}

function undigested(entries: Entries): Finding[] {
  return Object.entries(entries)
    .filter(([path, entry]) => path.includes('node_modules/') && entry.link !== true && !isOfOtherPlatforms(entry))
    .filter(([, { integrity = '' }]) => !integrity.startsWith('sha512-'))
    .map(([path]) => ({ file: LOCK, message: `${path} has no sha512 digest: run \`npm install\` to write it` }))
}

function isOfOtherPlatforms({ optional, os, cpu }: LockEntry): boolean {
  return optional === true && (os ?? cpu) !== undefined
}

function readEntries(root: string): Entries {
  // Written by npm. One of another shape has no packages, which the findings then say.
  return (JSON.parse(readText(root, LOCK)) as { packages?: Entries }).packages ?? {}
}
