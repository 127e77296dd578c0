// Builds the packages and packs each from a folder of its own, which holds what users get and nothing else.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { run, toolPath } from '../check/process.ts'
import { packedManifest, type SourceManifest } from './manifest.ts'
import { reachedModules } from './modules.ts'
import { guideForPackage, readmeForPackage } from './readme.ts'

/** In the order in which they are built: the second compiles against the declarations of the first. */
export const PUBLISHED = ['packages/latchkey', 'packages/conformance'] as const

const GUIDES = 'docs/guides'

export type PackedPackage = { folder: string; name: string; tarball: string }

/** Packs all packages into `destination`. Fails with what the compiler or npm said. */
export async function packPackages(root: string, destination: string): Promise<PackedPackage[]> {
  mkdirSync(destination, { recursive: true })
  const packed: PackedPackage[] = []
  for (const folder of PUBLISHED) {
    await build(root, folder)
    packed.push(await pack(root, folder, destination))
  }
  return packed
}

/** Comments stay in the declarations, which editors show. In the code they would be a sixth of the package. */
async function build(root: string, folder: string): Promise<void> {
  // A file that was deleted from src would otherwise still be packed from an older build.
  rmSync(join(root, folder, 'dist'), { recursive: true, force: true })
  const project = ['-p', `${folder}/tsconfig.build.json`, '--pretty', 'false']
  await must('tsc', [...project, '--emitDeclarationOnly'], root)
  await must('tsc', [...project, '--removeComments', '--declaration', 'false', '--isolatedDeclarations', 'false'], root)
}

async function pack(root: string, folder: string, destination: string): Promise<PackedPackage> {
  const stage = mkdtempSync(join(tmpdir(), 'latchkey-pack-'))
  try {
    // Written by hand in the shape that npm demands; `npm pack` would refuse another.
    const manifest = packedManifest(
      JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as SourceManifest,
    )
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    cpSync(join(root, folder, 'LICENSE'), join(stage, 'LICENSE'))
    for (const file of reachedModules(join(root, folder), manifest)) cpSync(join(root, folder, file), join(stage, file))
    for (const [file, text] of documentsOf(root, folder)) {
      mkdirSync(dirname(join(stage, file)), { recursive: true })
      writeFileSync(join(stage, file), text)
    }
    const file = (await must('npm', ['pack', '--silent', '--pack-destination', destination], stage)).split('\n').at(-1)
    return { folder, name: manifest.name, tarball: join(destination, file ?? '') }
  } finally {
    rmSync(stage, { recursive: true, force: true })
  }
}

/** The library carries the README of the repository and the guides that it names; another package has a README beside it. */
function documentsOf(root: string, folder: string): [string, string][] {
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  if (folder !== PUBLISHED[0]) return [['README.md', readmeForPackage(read(`${folder}/README.md`), new Set())]]
  const guides = readdirSync(join(root, GUIDES)).map(name => `${GUIDES}/${name}`)
  const packed = new Set([...guides, 'README.md'])
  return [
    ['README.md', readmeForPackage(read('README.md'), packed)],
    ...guides.map((file): [string, string] => [file, guideForPackage(read(file), file, packed)]),
  ]
}

async function must(tool: 'tsc' | 'npm', args: readonly string[], cwd: string): Promise<string> {
  const { code, output } = await run(tool === 'npm' ? 'npm' : toolPath(tool), args, cwd)
  if (code !== 0) throw new Error(`${tool} ${args.join(' ')} ended with ${code} in ${cwd}:\n${output}`)
  return output
}
