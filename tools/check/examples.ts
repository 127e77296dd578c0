// Every example of the documents compiles for strangers: against the packed declarations, with the oldest and the newest
// compiler and types of Node, and both ways to resolve modules. What the packages declare is checked too, not skipped.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Block, dedupe, extractBlocks, mapBack, writeBlocks } from './docs.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { subpathsOf } from './library.ts'
import { packOnce, scratchFolder, type UnpackedPackage } from './packed.ts'
import { compilerFindings, run } from './process.ts'
import { installSetUp, RESOLUTIONS, SET_UPS, type SetUp, STRICT } from './set-ups.ts'

export async function checkExamples({ root }: CheckOptions): Promise<Finding[]> {
  const packed = await packOnce(root)
  const { blocks } = extractBlocks(root)
  const folder = scratchFolder('latchkey-examples-')
  const found = await Promise.all(
    SET_UPS.map((setUp, index) => compileSetUp({ root, app: join(folder, String(index)), setUp, packed, blocks })),
  )
  return dedupe(found.flat())
}

type Application = { root: string; app: string; setUp: SetUp; packed: UnpackedPackage[]; blocks: Block[] }

async function compileSetUp({ root, app, setUp, packed, blocks }: Application): Promise<Finding[]> {
  mkdirSync(app)
  installSetUp(root, app, setUp, packed)
  writeBlocks(app, blocks)
  writeFileSync(join(app, 'consumer.ts'), consumerOf(packed))
  const byPath = new Map(blocks.map(block => [block.path, block]))
  const findings: Finding[] = []
  for (const [index, { options, files }] of compilations(blocks).entries()) {
    const project = `tsconfig.${index}.json`
    writeFileSync(join(app, project), JSON.stringify({ compilerOptions: { ...STRICT, ...options }, files }))
    const ran = await run(join(root, setUp.compiler), ['-p', project, '--pretty', 'false'], app)
    for (const finding of compilerFindings(ran, project)) {
      const message = `with ${setUp.name}: ${finding.message}`
      findings.push(mapBack({ ...finding, message }, byPath.get(finding.file)))
    }
  }
  return findings
}

function compilations(blocks: readonly Block[]): { options: object; files: string[] }[] {
  return RESOLUTIONS.flatMap(resolution => [
    // Drivers and frameworks are skipped here: the declarations of some fail by themselves.
    {
      options: { ...resolution, skipLibCheck: true, allowImportingTsExtensions: true },
      files: blocks.map(block => block.path),
    },
    { options: { ...resolution, skipLibCheck: false, exactOptionalPropertyTypes: true }, files: ['consumer.ts'] },
  ])
}

/** A module that names every subpath, and so every declaration of ours. */
function consumerOf(packed: readonly UnpackedPackage[]): string {
  const specifiers = packed.flatMap(({ extracted }) => subpathsOf(extracted, '.').map(each => each.specifier))
  return specifiers.map((name, index) => `export * as subpath${index} from '${name}'\n`).join('')
}
