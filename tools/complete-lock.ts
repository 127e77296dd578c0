// Adds to package-lock.json the platform packages (darwin, win32, musl …) that a partial registry mirror does not serve.
//
// `npm ci` refuses a lock file that lacks them, on every machine; `npm install` behind such a mirror leaves them out. Their
// versions are those their parents ask for; system and processor are in their names. Run it after `npm install` there:
// `npm run complete-lock`. Behind a full registry it changes nothing.
import { readFileSync, writeFileSync } from 'node:fs'

interface LockEntry {
  version?: string
  dev?: boolean
  license?: string
  engines?: Record<string, string>
  optionalDependencies?: Record<string, string>
  optional?: boolean
  cpu?: string[]
  os?: string[]
  libc?: string[]
}

const file = 'package-lock.json'
const systems = ['darwin', 'win32', 'linux', 'android', 'freebsd', 'openbsd', 'netbsd', 'sunos', 'aix', 'openharmony']
const processors = ['arm64', 'x64', 'ia32', 'arm', 'ppc64', 'riscv64', 's390x', 'loong64', 'mips64el', 'wasm32']

const lock: { packages: Record<string, LockEntry> } = JSON.parse(readFileSync(file, 'utf8'))
const added = Object.entries(lock.packages).flatMap(([path, parent]) => missingPlatforms(path, parent))
for (const [name, entry] of added) lock.packages[`node_modules/${name}`] = entry
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')))
if (added.length > 0) writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${added.length} platform packages added to ${file}`)

function missingPlatforms(path: string, parent: LockEntry): [string, LockEntry][] {
  return Object.entries(parent.optionalDependencies ?? {})
    .filter(([name]) => !lock.packages[`${path}/node_modules/${name}`] && !lock.packages[`node_modules/${name}`])
    .filter(([, version]) => /^\d+\.\d+\.\d+/.test(version))
    .map(([name, version]) => [name, platformEntry(name, version, parent)])
}

function platformEntry(name: string, version: string, { dev, license, engines }: LockEntry): LockEntry {
  const words = name.split(/[/-]/)
  const os = systems.filter(system => words.includes(system))
  const cpu = processors.filter(processor => words.includes(processor))
  const libc = words.includes('musl') ? { libc: ['musl'] } : {}
  const inherited = { ...(dev && { dev }), ...(license && { license }), ...(engines && { engines }) }
  return {
    version,
    ...inherited,
    ...(cpu.length > 0 && { cpu }),
    ...(os.length > 0 && { os }),
    ...libc,
    optional: true,
  }
}
