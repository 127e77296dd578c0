// The subpaths in the package.json of each package, the source files, the docs and the examples agree.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckOptions, Finding } from './finding.ts'
import { isTypeScript, listFiles, listWorkspaces, readText } from './files.ts'
import { LIBRARY, listPackages, packageOf, readManifest, sourceOf, subpathsOf } from './library.ts'
import type { Subpath } from './library.ts'
import { listDocuments } from './markdown.ts'
import { importsOf, readSource } from './syntax.ts'

export async function checkExports({ root }: CheckOptions): Promise<Finding[]> {
  const folders = listPackages(root)
  const subpaths = folders.flatMap(folder => subpathsOf(root, folder))
  const known = new Set(subpaths.map(subpath => subpath.specifier))
  const ours = new Map(folders.map(folder => [readManifest(root, folder).name, folder]))
  return [
    ...subpaths.flatMap(subpath => shapeFindings(root, subpath)),
    ...mentions(root).flatMap(({ file, line, specifier }) => {
      const folder = ours.get(packageOf(specifier))
      if (folder === undefined || known.has(specifier)) return []
      const cure = `correct it, or add it to "exports" of ${folder}/package.json`
      return [{ file, line, message: `imports "${specifier}", which is not a subpath: ${cure}` }]
    }),
    ...undocumented(root, subpaths),
  ]
}

const manifestOf = ({ folder }: Subpath): string => `${folder}/package.json`

function shapeFindings(root: string, subpath: Subpath): Finding[] {
  const at = (message: string): Finding => ({
    file: manifestOf(subpath),
    message: `exports["${subpath.subpath}"] ${message}`,
  })
  const source = sourceOf(subpath)
  if (source === undefined) return [at('has no "latchkey-source" condition: name its file under ./src first')]
  if (!existsSync(join(root, source)))
    return [at(`names ${source}, which does not exist: create it, or remove the entry`)]
  const built = (subpath.conditions['latchkey-source'] ?? '').replace(/^\.\/src\//, './dist/')
  const expected = {
    'latchkey-source': subpath.conditions['latchkey-source'],
    types: built.replace(/\.ts$/, '.d.ts'),
    default: built.replace(/\.ts$/, '.js'),
  }
  // Order counts too: Node and TypeScript take the first condition that matches.
  if (JSON.stringify(subpath.conditions) === JSON.stringify(expected)) return []
  return [at(`differs from what the build produces: write ${JSON.stringify(expected)}`)]
}

type Mention = { file: string; line: number; specifier: string }

/** Module names in the code of examples and bench, and in anything that looks like an import in the docs. */
function mentions(root: string): Mention[] {
  const outside = listWorkspaces(root).filter(folder => folder !== LIBRARY)
  const code = outside.flatMap(folder => listFiles(root, folder).filter(isTypeScript))
  const inCode = code.flatMap(file => importsOf(readSource(root, file)).map(reference => ({ file, ...reference })))
  const inDocs = listDocuments(root).flatMap(file =>
    readText(root, file)
      .split('\n')
      .flatMap((text, index) => {
        const found = text.matchAll(/\b(?:from|import|import\(|require\()\s*['"](@?latchkey(?:\/[^'"]*)?)['"]/g)
        return [...found].map(([, specifier = '']) => ({ file, line: index + 1, specifier }))
      }),
  )
  return [...inCode, ...inDocs]
}

function undocumented(root: string, subpaths: Subpath[]): Finding[] {
  const prose = listDocuments(root)
    .map(file => readText(root, file))
    .join('\n')
  return subpaths
    .filter(({ specifier }) => !new RegExp(`['"\`]${specifier}['"\`]`).test(prose))
    .map(subpath => ({
      file: manifestOf(subpath),
      message: `the subpath "${subpath.specifier}" is not mentioned in README.md or docs/: show its import, or name it in backquotes`,
    }))
}
