// The page of the console: what its first load weighs, and that it takes nothing from the library but types.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { buildPage } from '../../packages/console/build-page.ts'
import { isTypeScript, listFiles } from './files.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { isRelative, packageOf } from './library.ts'
import { readSource, stringValue, walk } from './syntax.ts'

const PAGE = 'packages/console/page'
/** What it runs with. The types of the admin API come from the library, and nothing else does. */
const PACKAGES = ['preact', 'uplot']
const TYPES_ONLY = 'latchkey/admin'

const FIRST_LOAD_BYTES_MAX = 40_000
const ALL_BYTES_MAX = 80_000

export async function checkPage({ root }: CheckOptions): Promise<Finding[]> {
  return [...importFindings(root), ...(await weightFindings())]
}

function importFindings(root: string): Finding[] {
  const files = listFiles(root, PAGE).filter(isTypeScript)
  return files.flatMap(file => {
    const source = readSource(root, file)
    const findings: Finding[] = []
    walk(source.program, node => {
      const specifier = stringValue(node.source)
      if (specifier === undefined || isRelative(specifier) || PACKAGES.includes(packageOf(specifier))) return
      if (specifier === TYPES_ONLY && node.importKind === 'type') return
      const cure = `the page imports types of ${TYPES_ONLY} (with \`import type\`), and ${PACKAGES.join(' and ')}`
      findings.push({ file, line: source.lineAt(node.start), message: `imports "${specifier}": ${cure}` })
    })
    return findings
  })
}

async function weightFindings(): Promise<Finding[]> {
  const out = mkdtempSync(join(tmpdir(), 'latchkey-page-'))
  try {
    await buildPage(out)
    const { first, all } = pageWeight(out)
    return [
      ...over('the first load', first, FIRST_LOAD_BYTES_MAX),
      ...over('the page with its later parts', all, ALL_BYTES_MAX),
    ]
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}

function over(what: string, bytes: number, max: number): Finding[] {
  if (bytes <= max) return []
  return [{ file: PAGE, message: `${what} has ${bytes} bytes compressed, more than ${max}: find what has grown` }]
}

/** Compressed. The first load is the HTML with every file that it names. */
export function pageWeight(out: string): { readonly first: number; readonly all: number } {
  const html = readFileSync(join(out, 'index.html'), 'utf8')
  const assets = readdirSync(join(out, 'assets'))
  const weight = (file: string) => gzipSync(readFileSync(join(out, file)), { level: 9 }).length
  const sum = (files: readonly string[]) => files.reduce((bytes, file) => bytes + weight(file), 0)
  const named = assets.filter(name => html.includes(name))
  return {
    first: sum(['index.html', ...named.map(name => `assets/${name}`)]),
    all: sum(['index.html', ...assets.map(name => `assets/${name}`)]),
  }
}
