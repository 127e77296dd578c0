// Every TypeScript block in the documents, and in the doc comments of the packages, compiles.
//
//   ```ts                       compiled as a module of its own
//   ```ts file=shop.ts          written under that name, so that other blocks of the document may import './shop.ts'
//   <!-- context: shop -->      above a block: docs/preludes/shop.ts is put before it, unseen by the reader
//   <!-- continues -->          above a block: it begins where the document's previous block ended
//   <!-- wrong -->              above a block: shows what not to do; it still compiles, and a comment in it says "wrong"
//   <!-- source: a/b.ts -->     above a block: it is that file of the repository, word for word; see shown-sources.ts
//
// Errors are reported at the line of the document. Relative links between documents are checked as well, and the README leads to every guide.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { isTest, isTypeScript, listFiles, readText } from './files.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { anchorsOf, fencesOf, linksOf, listDocuments } from './markdown.ts'
import type { Fence } from './markdown.ts'
import { checkSources, sourceOf } from './shown-sources.ts'
import { compilerFindings, run, toolPath } from './process.ts'

const GUIDES = 'docs/guides'
// Inside node_modules: ignored by git, and module names resolve as they do for the repository's own code.
const CACHE = 'node_modules/.cache/latchkey-docs'

/** A stretch of a generated file, and the place it was copied from. */
type Segment = { file: string; firstLine: number; code: string }

export type Block = { path: string; segments: Segment[] }

export async function checkDocs({ root, update }: CheckOptions): Promise<Finding[]> {
  const shown = checkSources({ root, update })
  const { blocks, findings } = extractBlocks(root)
  return [...shown, ...findings, ...linkFindings(root), ...guideFindings(root), ...(await compile(root, blocks))]
}

export function extractBlocks(root: string): { blocks: Block[]; findings: Finding[] } {
  const blocks: Block[] = []
  const findings: Finding[] = []
  for (const [file, fences] of documentedFences(root)) {
    let previous: Block | undefined
    for (const fence of fences.filter(isCompiled)) {
      const segments: Segment[] = []
      for (const directive of fence.directives) {
        const lead = follow(root, directive, { fence, previous })
        segments.push(...lead.segments)
        if (lead.problem !== undefined) findings.push({ file, line: fence.firstLine, message: lead.problem })
      }
      segments.push({ file, firstLine: fence.firstLine, code: fence.code })
      const name = /\bfile=(\S+)/.exec(fence.info)?.[1] ?? `line-${fence.firstLine}.ts`
      previous = { path: posix.join(file, name), segments }
      blocks.push(previous)
    }
  }
  return { blocks, findings }
}

/** A file that is shown is compiled where it is. */
function isCompiled(fence: Fence): boolean {
  return (fence.language === 'ts' || fence.language === 'typescript') && sourceOf(fence) === undefined
}

/** What a directive puts before its block, or why it cannot be followed. Other comments mean nothing here. */
function follow(
  root: string,
  directive: string,
  { fence, previous }: { fence: Fence; previous: Block | undefined },
): { segments: readonly Segment[]; problem?: string } {
  const context = /^context:\s*([\w-]+)$/.exec(directive)?.[1]
  if (context !== undefined) {
    const file = `docs/preludes/${context}.ts`
    if (existsSync(join(root, file))) return { segments: [{ file, firstLine: 1, code: readText(root, file) }] }
    return { segments: [], problem: `needs the context "${context}": write ${file}` }
  }
  if (directive === 'continues') {
    if (previous !== undefined) return { segments: previous.segments }
    return {
      segments: [],
      problem: 'continues a block, but the document has none before it: remove the comment',
    }
  }
  if (directive === 'wrong' && !/\/[/*].*\bwrong\b/i.test(fence.code)) {
    return {
      segments: [],
      problem: 'is marked wrong where readers do not see it: write "wrong" in a comment of the code',
    }
  }
  return { segments: [] }
}

function documentedFences(root: string): [string, Fence[]][] {
  const documents = listDocuments(root).map((file): [string, Fence[]] => [file, fencesOf(readText(root, file))])
  const sources = listFiles(root, 'packages').filter(file => isTypeScript(file) && !isTest(file))
  return [...documents, ...sources.map((file): [string, Fence[]] => [file, docCommentFences(readText(root, file))])]
}

function docCommentFences(text: string): Fence[] {
  return [...text.matchAll(/\/\*\*\s*\n[\s\S]*?\*\//g)].flatMap(comment => {
    const line = text.slice(0, comment.index).split('\n').length
    const plain = comment[0].split('\n').map(row => row.replace(/^\s*\* ?/, ''))
    return fencesOf(plain.join('\n'), line)
  })
}

async function compile(root: string, blocks: Block[]): Promise<Finding[]> {
  const folder = join(root, CACHE)
  rmSync(folder, { recursive: true, force: true })
  if (blocks.length === 0) return []
  writeBlocks(folder, blocks)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project(root, blocks), null, 2))
  const ran = await run(toolPath('tsc'), ['-p', join(folder, 'tsconfig.json'), '--pretty', 'false'], root)
  const byPath = new Map(blocks.map(block => [posix.join(CACHE, block.path), block]))
  return dedupe(compilerFindings(ran, CACHE).map(finding => mapBack(finding, byPath.get(finding.file))))
}

/** Writes each block as a module of its own, in an application of ES modules. */
export function writeBlocks(folder: string, blocks: readonly Block[]): void {
  for (const { path, segments } of blocks) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    // The last line makes a module of a block without imports, so that blocks do not see each other's names.
    writeFileSync(join(folder, path), [...segments.map(segment => segment.code), 'export {}', ''].join('\n'))
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
}

/** A block that others continue fails once for itself and once in each of them. */
export function dedupe(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map(finding => [JSON.stringify(finding), finding])).values()]
}

function project(root: string, blocks: Block[]): object {
  return {
    extends: `${relative(join(root, CACHE), root)}/tsconfig.base.json`,
    compilerOptions: {
      noEmit: true,
      customConditions: ['latchkey-source'],
      isolatedDeclarations: false,
      declaration: false,
      // A block shows a thing; it need not use it.
      noUnusedLocals: false,
      noUnusedParameters: false,
    },
    files: blocks.map(block => block.path),
  }
}

export function mapBack(finding: Finding, block: Block | undefined): Finding {
  let line = finding.line ?? 1
  for (const segment of block?.segments ?? []) {
    const count = segment.code.split('\n').length
    if (line <= count) return { file: segment.file, line: segment.firstLine + line - 1, message: finding.message }
    line -= count
  }
  return finding
}

function linkFindings(root: string): Finding[] {
  return listDocuments(root).flatMap(file =>
    linksOf(readText(root, file)).flatMap(({ target, line }) => {
      if (/^[a-z][a-z+.-]*:/i.test(target)) return []
      const [path = '', anchor] = decodeURI(target).split('#')
      const linked = path === '' ? file : posix.join(posix.dirname(file), path)
      if (!existsSync(join(root, linked)))
        return [{ file, line, message: `links to ${target}, which does not exist: correct the path` }]
      if (anchor === undefined || !linked.endsWith('.md') || anchorsOf(readText(root, linked)).has(anchor)) return []
      return [{ file, line, message: `links to ${target}, but ${linked} has no such heading: correct the anchor` }]
    }),
  )
}

function guideFindings(root: string): Finding[] {
  const readme = existsSync(join(root, 'README.md')) ? readText(root, 'README.md') : ''
  const linked = new Set(linksOf(readme).map(({ target }) => target.split('#')[0]))
  const guides = listFiles(root, GUIDES).filter(file => file.endsWith('.md') && !linked.has(file))
  return guides.map(file => ({ file, message: 'the README does not link to this guide: add it under "Read on"' }))
}
