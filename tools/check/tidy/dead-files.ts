import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { isTest, isTypeScript, listFiles, listWorkspaces, readText } from '../files.ts'
import type { Finding } from '../finding.ts'
import { reachFrom, readManifest } from '../library.ts'
import type { Manifest } from '../library.ts'
import { readSource, stringValue, walk } from '../syntax.ts'

/** Source files that no export, script, configuration or test reaches. */
export function deadFileFindings(root: string): Finding[] {
  const folders = [...listWorkspaces(root), '.']
  const entries = folders.flatMap(folder => entriesOf(root, folder))
  const tests = [...listFiles(root).filter(isTest), ...listFiles(root, 'docs/preludes').filter(isTypeScript)]
  const reached = new Set(reachFrom(root, [...entries, ...tests], file => namedFiles(root, file)).files)
  const candidates = [...listWorkspaces(root), 'tools', 'test', 'torture', 'siege', 'mutants'].flatMap(folder =>
    listFiles(root, folder),
  )
  return candidates
    .filter(file => isTypeScript(file) && !reached.has(file))
    .map(file => ({ file, message: 'nothing reaches this file (no export, script or test): use it, or delete it' }))
}

/** The files that a package.json starts from: exports, bin, and every .ts file named in a script; plus tool configurations. */
function entriesOf(root: string, folder: string): string[] {
  if (!existsSync(join(root, folder, 'package.json'))) return []
  const manifest = readManifest(root, folder)
  const named = [...exported(manifest), ...binaries(manifest), ...scripted(manifest), ...loaded(root, folder)]
  const configurations = listFiles(root, folder === '.' ? '' : folder).filter(file => file.endsWith('.config.ts'))
  return [...named.map(file => posix.join(folder, file)), ...configurations].filter(file =>
    existsSync(join(root, file)),
  )
}

function exported({ exports = {} }: Manifest): string[] {
  return Object.values(exports).flatMap(entry => (typeof entry === 'string' ? [] : (entry['latchkey-source'] ?? [])))
}

function binaries({ bin = {} }: Manifest): string[] {
  const files = typeof bin === 'string' ? [bin] : Object.values(bin)
  return files.map(file => file.replace(/^(\.\/)?dist\//, 'src/').replace(/\.js$/, '.ts'))
}

function scripted({ scripts = {} }: Manifest): string[] {
  return Object.values(scripts).flatMap(script => script.match(/[\w./-]+\.ts\b/g) ?? [])
}

/** What a page loads: `<script src="./main.tsx">`, relative to the workspace. */
function loaded(root: string, folder: string): string[] {
  if (folder === '.') return []
  const pages = listFiles(root, folder).filter(file => file.endsWith('.html'))
  return pages.flatMap(page => {
    const scripts = readText(root, page).matchAll(/\bsrc="\.\/([\w./-]+\.tsx?)"/g)
    return [...scripts].map(([, script = '']) => posix.relative(folder, posix.join(posix.dirname(page), script)))
  })
}

/** Files started as a process or a worker are named by a string beside the starter: new URL('./child.ts', import.meta.url). */
function namedFiles(root: string, file: string): string[] {
  const found: string[] = []
  walk(readSource(root, file).program, node => {
    const text = stringValue(node)
    if (text === undefined || !/^[\w./-]+\.ts$/.test(text)) return
    for (const base of [posix.dirname(file), '.']) {
      const target = posix.join(base, text)
      if (existsSync(join(root, target))) found.push(target)
    }
  })
  return found
}
