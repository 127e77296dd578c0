import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

/** The oldest major version the tests may run on: everything Latchkey promises is promised from here on. */
export const OLDEST_MAJOR = 15

const DEBIAN_VERSIONS = '/usr/lib/postgresql'

export type FoundPostgres =
  | { kind: 'found'; postgres: string; initdb: string; version: string }
  | { kind: 'missing'; why: string }

/** Looks on PATH first, so that a person decides which server is tested, then where Debian hides its versions. */
export function findPostgres(): FoundPostgres {
  const tooOld: string[] = []
  for (const directory of [...pathDirectories(), ...debianDirectories()]) {
    const version = versionIn(directory)
    if (version === undefined) continue
    if (Number.parseInt(version, 10) >= OLDEST_MAJOR) {
      return { kind: 'found', postgres: join(directory, 'postgres'), initdb: join(directory, 'initdb'), version }
    }
    tooOld.push(`${version} in ${directory}`)
  }
  if (tooOld.length > 0) {
    return { kind: 'missing', why: `PostgreSQL ${OLDEST_MAJOR} or newer is needed, found only ${tooOld.join(', ')}` }
  }
  return { kind: 'missing', why: `no PostgreSQL server binary on PATH or under ${DEBIAN_VERSIONS}` }
}

function pathDirectories(): string[] {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).filter(directory => directory !== '')
  // A link on PATH may point at `postgres` alone: initdb lives beside the real file.
  return onPath
    .map(directory => join(directory, 'postgres'))
    .filter(file => existsSync(file))
    .map(file => dirname(realpathSync(file)))
}

function debianDirectories(): string[] {
  if (!existsSync(DEBIAN_VERSIONS)) return []
  const majors = readdirSync(DEBIAN_VERSIONS).map(name => Number(name))
  return majors
    .filter(major => Number.isFinite(major))
    .toSorted((a, b) => b - a)
    .map(major => join(DEBIAN_VERSIONS, String(major), 'bin'))
}

function versionIn(directory: string): string | undefined {
  const postgres = join(directory, 'postgres')
  if (!existsSync(postgres) || !existsSync(join(directory, 'initdb'))) return undefined
  try {
    const line = execFileSync(postgres, ['--version'], { encoding: 'utf8', timeout: 10_000 })
    return /PostgreSQL\) (\d+[^\s]*)/.exec(line)?.[1]
  } catch {
    // A wrapper or a binary of another architecture: as good as absent.
    return undefined
  }
}
