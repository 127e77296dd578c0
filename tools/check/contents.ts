// What is in a package: code, declarations, a README that a package page can show, and nothing that only the repository needs.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SOURCE_CONDITION } from '../pack/manifest.ts'
import { listEvery } from './files.ts'
import type { Finding } from './finding.ts'
import { linksOf } from './markdown.ts'

/** Sources, maps and tests have no place in a package. The console is a built page. */
const BELONGS = /^(?:package\.json|LICENSE|README\.md|dist\/.+(?<!\.test)\.(?:d\.ts|js)|dist\/page\/.+\.(?:css|html))$/

const NEEDED = ['package.json', 'LICENSE', 'README.md']

/** `extracted`: the tarball's files. `bytesMax`: unpacked, all of them together. */
export function contentFindings(
  { folder, extracted }: { folder: string; extracted: string },
  bytesMax: number,
): Finding[] {
  const files = listEvery(extracted)
  const bytes = files.reduce((sum, file) => sum + statSync(join(extracted, file)).size, 0)
  const at = (message: string): Finding => ({ file: folder, message: `the package ${message}` })
  return [
    ...NEEDED.filter(file => !files.includes(file)).map(file => at(`has no ${file}: pack it`)),
    ...files.filter(file => !BELONGS.test(file)).map(file => at(`contains ${file}: leave it out (tools/pack)`)),
    ...(bytes > bytesMax
      ? [at(`has ${bytes} bytes, more than ${bytesMax}: find what has grown, or raise the limit`)]
      : []),
    ...manifestProblems(extracted).map(at),
    ...relativeLinks(extracted).map(target =>
      at(`has a README that links to ${target}, which no package page follows`),
    ),
  ]
}

function manifestProblems(extracted: string): string[] {
  const text = readText(extracted, 'package.json')
  const words = [SOURCE_CONDITION, '"private"', '"scripts"', '"devDependencies"']
  return words.filter(word => text.includes(word)).map(word => `says ${word} in its package.json: remove it there`)
}

function relativeLinks(extracted: string): string[] {
  const targets = linksOf(readText(extracted, 'README.md')).map(link => link.target)
  return targets.filter(target => !/^(?:[a-z][a-z+.-]*:|#)/i.test(target))
}

function readText(extracted: string, file: string): string {
  return existsSync(join(extracted, file)) ? readFileSync(join(extracted, file), 'utf8') : ''
}
