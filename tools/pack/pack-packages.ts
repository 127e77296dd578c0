// Builds the packages and packs each from a folder of its own, which holds what users get and nothing else.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { bundleProgram } from '../../packages/cli/bundle.ts'
import { buildPage } from '../../packages/console/build-page.ts'
import { build, must } from './build.ts'
import { pruneDeclarations } from './declarations.ts'
import { indentWithTabs } from './indentation.ts'
import { packedManifest, type SourceManifest } from './manifest.ts'
import { declaredEntries, reachedModules } from './modules.ts'
import { readmeForPackage } from './readme.ts'

const LIBRARY = 'packages/latchkey'

const PROGRAM = 'packages/cli'
const CONSOLE = 'packages/console'

/** In the order in which they are built: the others compile against the declarations of the first, and the program against those of the console. */
const PUBLISHED = [LIBRARY, 'packages/conformance', CONSOLE, PROGRAM]

export type PackedPackage = { folder: string; name: string; tarball: string }

/** Packs all packages into `destination`. Fails with what the compiler or npm said. */
export async function packPackages(root: string, destination: string): Promise<PackedPackage[]> {
  mkdirSync(destination, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'latchkey-pack-'))
  try {
    const packed: PackedPackage[] = []
    for (const folder of PUBLISHED) {
      const built = join(work, 'built', folder)
      const declarations = folder === LIBRARY ? undefined : join(work, 'built')
      await build({ root, folder, out: built, declarations })
      packed.push(await pack({ root, folder, built, stage: join(work, 'stage', folder), destination }))
    }
    return packed
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

type Packing = { root: string; folder: string; built: string; stage: string; destination: string }

async function pack({ root, folder, built, stage, destination }: Packing): Promise<PackedPackage> {
  // Written by hand in the shape that npm demands; `npm pack` would refuse another.
  const source = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as SourceManifest
  const manifest = packedManifest(source)
  for (const [file, text] of packedModules(built, manifest)) {
    mkdirSync(dirname(join(stage, file)), { recursive: true })
    writeFileSync(join(stage, file), indentWithTabs(file, text))
  }
  // In one file, so that it needs nothing else: see the decision "What is packed".
  if (folder === PROGRAM) await bundleProgram(join(stage, 'dist/bin.js'))
  // `latchkey console` serves the page from beside its file.
  if (folder === CONSOLE || folder === PROGRAM) await buildPage(join(stage, 'dist/page'))
  cpSync(join(root, folder, 'LICENSE'), join(stage, 'LICENSE'))
  const texts: [string, string][] = [
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['README.md', readmeOf(root, folder)],
  ]
  for (const [file, text] of texts) writeFileSync(join(stage, file), text)
  const said = await must('npm', ['pack', '--silent', '--pack-destination', destination], stage)
  return { folder, name: manifest.name, tarball: join(destination, said.split('\n').at(-1) ?? '') }
}

function packedModules(built: string, manifest: SourceManifest): Map<string, string> {
  const texts = new Map(reachedModules(built, manifest).map(file => [file, readFileSync(join(built, file), 'utf8')]))
  const isDeclaration = ([file]: readonly [string, string]) => file.endsWith('.d.ts')
  const code = [...texts].filter(each => !isDeclaration(each))
  return new Map([...code, ...pruneDeclarations(new Map([...texts].filter(isDeclaration)), declaredEntries(manifest))])
}

/** The library carries the README of the repository; another package has one beside it. */
function readmeOf(root: string, folder: string): string {
  return readmeForPackage(readFileSync(join(root, folder === LIBRARY ? '.' : folder, 'README.md'), 'utf8'))
}
