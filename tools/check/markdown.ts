// Markdown as the checks see it: which documents there are, their fenced code, their links and headings.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { listFiles } from './files.ts'

const TOP_DOCUMENTS = ['README.md', 'ARCHITECTURE.md', 'SAFETY.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md']

export type Fence = { language: string; info: string; directives: string[]; firstLine: number; code: string }

export type Link = { target: string; line: number }

/** Documents for readers, relative to the root. */
export function listDocuments(root: string): string[] {
  const top = TOP_DOCUMENTS.filter(file => existsSync(join(root, file)))
  const below = [...listFiles(root, 'docs'), ...listFiles(root, 'packages')]
  return [...top, ...below.filter(file => file.endsWith('.md'))]
}

/** Fenced code with the HTML comments (`<!-- … -->`) that stand directly above the fence. `line` is where the text begins. */
export function fencesOf(text: string, line = 1): Fence[] {
  const lines = text.split('\n')
  const fences: Fence[] = []
  let directives: string[] = []
  for (let at = 0; at < lines.length; at++) {
    const current = lines[at] ?? ''
    const open = /^(\s*)(`{3,}|~{3,})\s*(\S*)\s*(.*)$/.exec(current)
    if (open === null) {
      const comment = /^\s*<!--\s*(.*?)\s*-->\s*$/.exec(current)
      if (comment !== null) directives.push(comment[1] ?? '')
      else if (current.trim() !== '') directives = []
      continue
    }
    const [, indent = '', mark = '', language = '', info = ''] = open
    const end = lines.findIndex((candidate, index) => index > at && candidate.trim() === mark)
    const last = end === -1 ? lines.length : end
    const code = lines.slice(at + 1, last).map(row => (row.startsWith(indent) ? row.slice(indent.length) : row))
    fences.push({ language, info, directives, firstLine: line + at + 1, code: code.join('\n') })
    directives = []
    at = last
  }
  return fences
}

/** Text without fenced code and inline code, line for line, so that links and headings in code do not count. */
function proseOf(text: string): string[] {
  const lines = text.split('\n')
  for (const { firstLine, code } of fencesOf(text)) {
    const count = code.split('\n').length
    for (let at = firstLine - 2; at < firstLine - 1 + count; at++) lines[at] = ''
  }
  return lines.map(row => row.replace(/`[^`]*`/g, ''))
}

export function linksOf(text: string): Link[] {
  return proseOf(text).flatMap((row, index) =>
    [...row.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\s*\[[^\]]+\]:\s*(\S+)/g)].map(match => ({
      target: match[1] ?? match[2] ?? '',
      line: index + 1,
    })),
  )
}

/** What a document shows as code, in fences and inline. */
export function codeOf(text: string): string {
  const fenced = fencesOf(text).map(({ code }) => code)
  const inline = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
  return [...fenced, ...inline].join('\n')
}

/** The anchors that a document's headings get, by GitHub's rule. */
export function anchorsOf(text: string): Set<string> {
  const fenced = new Set(
    fencesOf(text).flatMap(fence => fence.code.split('\n').map((_, index) => fence.firstLine + index)),
  )
  const anchors = new Set<string>()
  for (const [index, row] of text.split('\n').entries()) {
    const heading = fenced.has(index + 1) ? null : /^#{1,6}\s+(.*?)\s*#*$/.exec(row)
    if (heading === null) continue
    const plain = (heading[1] ?? '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
    let anchor = slug
    for (let copy = 1; anchors.has(anchor); copy++) anchor = `${slug}-${copy}`
    anchors.add(anchor)
  }
  return anchors
}
