// Builds and packs the library, installs the tarball into an empty application, and uses it there as a user would.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CheckOptions, Finding } from './finding.ts'
import { LIBRARY, readManifest, subpathsOf } from './library.ts'
import { compilerFindings, run, toolPath } from './process.ts'
import type { Ran } from './process.ts'

const MANIFEST = `${LIBRARY}/package.json`

export async function checkPackaging({ root }: CheckOptions): Promise<Finding[]> {
  const specifiers = subpathsOf(readManifest(root, LIBRARY)).map(subpath => subpath.specifier)
  if (specifiers.length === 0) return [{ file: MANIFEST, message: '"exports" is empty: users could import nothing' }]
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-packaging-'))
  try {
    const built = await build(root)
    if (built.length > 0) return built
    const tarball = await pack(root, folder)
    if (typeof tarball !== 'string') return [tarball]
    const linted = Promise.all([publint(tarball, folder), attw(tarball, folder)])
    return [...(await tryOut(root, folder, tarball, specifiers)), ...(await linted).flat()]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function build(root: string): Promise<Finding[]> {
  // A file that was deleted from src would otherwise still be packed from an older build.
  rmSync(join(root, LIBRARY, 'dist'), { recursive: true, force: true })
  const project = `${LIBRARY}/tsconfig.build.json`
  return compilerFindings(await run(toolPath('tsc'), ['-p', project, '--pretty', 'false'], root), project)
}

async function pack(root: string, folder: string): Promise<string | Finding> {
  const packed = await run('npm', ['pack', '--silent', '--pack-destination', folder], join(root, LIBRARY))
  const name = readdirSync(folder).find(file => file.endsWith('.tgz'))
  return name === undefined ? failed('npm pack', packed) : join(folder, name)
}

async function tryOut(root: string, folder: string, tarball: string, specifiers: string[]): Promise<Finding[]> {
  const app = join(folder, 'app')
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
  const flags = ['--omit=dev', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  const installed = await run('npm', ['install', tarball, ...flags], app)
  if (installed.code !== 0) return [failed('npm install of the tarball', installed)]
  const used = await Promise.all([importAll(app, specifiers), typeCheck(root, app, specifiers)])
  return [...strangers(root, app), ...used.flat()]
}

function strangers(root: string, app: string): Finding[] {
  const expected = new Set(['latchkey', ...Object.keys(readManifest(root, LIBRARY).dependencies ?? {})])
  const installed = readdirSync(join(app, 'node_modules'))
    .filter(name => !name.startsWith('.'))
    .flatMap(name =>
      name.startsWith('@') ? readdirSync(join(app, 'node_modules', name)).map(part => `${name}/${part}`) : [name],
    )
  return installed
    .filter(name => !expected.has(name))
    .map(name => ({
      file: MANIFEST,
      message: `installing latchkey also installs "${name}": remove the dependency that brings it`,
    }))
}

/** One process imports them one after another and reports which failed; a subpath must not need a driver or a framework. */
async function importAll(app: string, specifiers: string[]): Promise<Finding[]> {
  const program = `for (const name of ${JSON.stringify(specifiers)}) {
    try { await import(name) } catch (error) { console.log(name + ': ' + error); process.exitCode = 1 }
  }`
  writeFileSync(join(app, 'import-all.js'), program)
  const ran = await run(process.execPath, ['import-all.js'], app)
  return ran.code === 0 ? [] : [failed('importing a subpath in an empty application', ran)]
}

/** Declarations are checked, not skipped: a .d.ts of ours that names a framework's types would fail here. */
async function typeCheck(root: string, app: string, specifiers: string[]): Promise<Finding[]> {
  const imports = specifiers.map((name, index) => `export * as subpath${index} from '${name}'`)
  writeFileSync(join(app, 'consumer.ts'), `${imports.join('\n')}\n`)
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2023'],
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    typeRoots: [join(root, 'node_modules/@types')],
    types: ['node'],
  }
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
  const ran = await run(toolPath('tsc'), ['-p', 'tsconfig.json', '--pretty', 'false'], app)
  return compilerFindings(ran, MANIFEST).map(finding => ({
    ...finding,
    message: `the built types do not check: ${finding.message}`,
  }))
}

async function publint(tarball: string, cwd: string): Promise<Finding[]> {
  const ran = await run(toolPath('publint'), ['run', tarball, '--strict'], cwd)
  return ran.code === 0 ? [] : [failed('publint', ran)]
}

async function attw(tarball: string, cwd: string): Promise<Finding[]> {
  const flags = ['--profile', 'esm-only', '--no-definitely-typed', '--format', 'ascii', '--no-emoji']
  const ran = await run(toolPath('attw'), [tarball, ...flags], cwd)
  return ran.code === 0 ? [] : [failed('attw', ran)]
}

const failed = (what: string, { code, output }: Ran): Finding => ({
  file: MANIFEST,
  message: `${what} ended with ${code}:\n${output}`,
})
