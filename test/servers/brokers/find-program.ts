import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installDebianPackage } from '../install-postgres.ts'

export type FoundProgram = { kind: 'found'; path: string } | { kind: 'missing'; why: string }

/** `sbin` is not on everybody's PATH, and Debian puts servers there. */
const DEBIAN_DIRECTORIES = ['/usr/sbin', '/usr/local/sbin']

/** In `first`, then on PATH, so that a person decides which server is tested. */
export function findProgram(name: string, first: readonly string[] = []): FoundProgram {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).filter(directory => directory !== '')
  const directories = [...first, ...onPath, ...DEBIAN_DIRECTORIES]
  const path = directories.map(directory => join(directory, name)).find(file => existsSync(file))
  return path === undefined ? { kind: 'missing', why: `no ${name} on PATH` } : { kind: 'found', path }
}

/** Once for a run, before its files: two installations at a time would lock each other out. */
export function installMissing(find: () => { kind: 'found' | 'missing' }, debianPackage: string): void {
  if (find().kind === 'found') return
  const installation = installDebianPackage(debianPackage)
  if (installation.kind === 'refused') console.error(`tests: no ${debianPackage}, because ${installation.why}`)
}
