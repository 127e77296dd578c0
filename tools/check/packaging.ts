// Packs the packages, looks at what is inside, installs them into an empty application, and imports all of it there.
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { contentFindings } from './contents.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { readManifest, subpathsOf } from './library.ts'
import { packOnce, scratchFolder, type UnpackedPackage } from './packed.ts'
import { run, toolPath } from './process.ts'
import type { Ran } from './process.ts'

/** Unpacked, a little above what each is today: a package that grows is a decision. */
const BYTES_MAX: Record<string, number> = {
  'packages/latchkey': 1_900_000,
  'packages/conformance': 560_000,
  'packages/cli': 1_550_000,
  'packages/console': 170_000,
}

export async function checkPackaging({ root }: CheckOptions): Promise<Finding[]> {
  const packed = await packOnce(root)
  const linted = Promise.all(packed.flatMap(each => [publint(each), attw(each)]))
  const contents = packed.flatMap(each => contentFindings(each, BYTES_MAX[each.folder] ?? 0))
  return [...contents, ...(await refusals(root, packed)), ...(await tryOut(packed)), ...(await linted).flat()]
}

/** `npm pack` in a package would pack what is for the workspace. */
async function refusals(root: string, packed: readonly UnpackedPackage[]): Promise<Finding[]> {
  const ran = await Promise.all(
    packed.map(({ folder }) =>
      run('npm', ['pack', '--pack-destination', scratchFolder('latchkey-refused-')], join(root, folder)),
    ),
  )
  return packed.flatMap(({ folder }, index) => {
    const { code = 0, output = '' } = ran[index] ?? {}
    if (code !== 0 && output.includes('npm run pack')) return []
    return [
      {
        file: `${folder}/package.json`,
        message: `\`npm pack\` here packs the workspace's files: let its "prepack" refuse`,
      },
    ]
  })
}

async function tryOut(packed: readonly UnpackedPackage[]): Promise<Finding[]> {
  const app = scratchFolder('latchkey-packaging-')
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
  const flags = ['--omit=dev', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  const installed = await run('npm', ['install', ...packed.map(each => each.tarball), ...flags], app)
  if (installed.code !== 0) return [failed('npm install of the tarballs', installed)]
  return [...strangers(app, packed), ...(await importAll(app, packed))]
}

function strangers(app: string, packed: readonly UnpackedPackage[]): Finding[] {
  const declared = packed.flatMap(({ extracted }) => Object.keys(readManifest(extracted, '.').dependencies ?? {}))
  const expected = new Set([...packed.map(each => each.name), ...declared])
  const installed = readdirSync(join(app, 'node_modules'))
    .filter(name => !name.startsWith('.'))
    .flatMap(name =>
      name.startsWith('@') ? readdirSync(join(app, 'node_modules', name)).map(part => `${name}/${part}`) : [name],
    )
  return installed
    .filter(name => !expected.has(name))
    .map(name => ({
      file: 'packages',
      message: `installing our packages also installs "${name}": remove the dependency that brings it`,
    }))
}

/** One process imports them one after another and reports which failed; a subpath must not need a driver or a framework. */
async function importAll(app: string, packed: readonly UnpackedPackage[]): Promise<Finding[]> {
  const specifiers = packed.flatMap(({ extracted }) => subpathsOf(extracted, '.').map(each => each.specifier))
  const program = `for (const name of ${JSON.stringify(specifiers)}) {
    try { await import(name) } catch (error) { console.log(name + ': ' + error); process.exitCode = 1 }
  }`
  writeFileSync(join(app, 'import-all.js'), program)
  const ran = await run(process.execPath, ['import-all.js'], app)
  return ran.code === 0 ? [] : [failed('importing a subpath in an empty application', ran)]
}

async function publint({ tarball, extracted }: UnpackedPackage): Promise<Finding[]> {
  const ran = await run(toolPath('publint'), ['run', tarball, '--strict'], extracted)
  return ran.code === 0 ? [] : [failed('publint', ran)]
}

async function attw({ tarball, extracted }: UnpackedPackage): Promise<Finding[]> {
  const flags = ['--profile', 'esm-only', '--no-definitely-typed', '--format', 'ascii', '--no-emoji']
  const ran = await run(toolPath('attw'), [tarball, ...flags], extracted)
  return ran.code === 0 ? [] : [failed('attw', ran)]
}

const failed = (what: string, { code, output }: Ran): Finding => ({
  file: 'packages',
  message: `${what} ended with ${code}:\n${output}`,
})
