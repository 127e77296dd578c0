// Reads TypeScript with the parser that the test runner already brings: a scanner of our own would trip over an import
// inside a template string or a comment, and TypeScript 7 ships no compiler API.
import { parseAst } from 'vitest/node'
import { readText } from './files.ts'

/** A syntax node as far as the checks look at one. */
export type SyntaxNode = { type: string; start: number; end: number; [field: string]: unknown }

export type Source = { file: string; text: string; program: SyntaxNode; lineAt(offset: number): number }

export type ImportReference = { specifier: string; line: number }

export function parseSource(file: string, text: string): Source {
  try {
    // The parser's node types are a large union; the walk below needs the three fields that every node has.
    const program = parseAst(text, { lang: file.endsWith('.tsx') ? 'tsx' : 'ts' }) as unknown as SyntaxNode
    return { file, text, program, lineAt: lineFinder(text) }
  } catch (cause) {
    throw new Error(`${file} does not parse: fix its syntax first. ${String(cause)}`, { cause })
  }
}

export function readSource(root: string, file: string): Source {
  return parseSource(file, readText(root, file))
}

/** Calls `visit` for every node, parents first, with the node's ancestors (nearest last). */
export function walk(node: SyntaxNode, visit: (node: SyntaxNode, ancestors: readonly SyntaxNode[]) => void): void {
  const ancestors: SyntaxNode[] = []
  const step = (current: SyntaxNode): void => {
    visit(current, ancestors)
    ancestors.push(current)
    for (const child of childrenOf(current)) step(child)
    ancestors.pop()
  }
  step(node)
}

/** Every module name that a file mentions: import, export from, import type, import(), typeof import() and import = require. */
export function importsOf(source: Source): ImportReference[] {
  const references: ImportReference[] = []
  walk(source.program, node => {
    const target = IMPORTING.has(node.type) ? (node.source ?? node.expression) : undefined
    const specifier = stringValue(target)
    if (specifier !== undefined) references.push({ specifier, line: source.lineAt(node.start) })
  })
  return references
}

/** The text of a string literal (or of a template without placeholders), else undefined. */
export function stringValue(node: unknown): string | undefined {
  if (!isNode(node)) return undefined
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node.type !== 'TemplateLiteral' || !Array.isArray(node.quasis) || node.quasis.length !== 1) return undefined
  const [only] = node.quasis as { value: { cooked: string } }[]
  return only?.value.cooked
}

/** `a.b.c` for a chain of plain names, else undefined. */
export function dottedName(node: unknown): string | undefined {
  if (!isNode(node)) return undefined
  if (node.type === 'Identifier') return String(node.name)
  if (node.type === 'CallExpression') return dottedName(node.callee)
  if (node.type !== 'MemberExpression' || node.computed === true) return undefined
  const object = dottedName(node.object)
  const property = dottedName(node.property)
  return object === undefined || property === undefined ? undefined : `${object}.${property}`
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

const IMPORTING = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
  'TSExternalModuleReference',
])

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  return Object.values(node).flat().filter(isNode)
}

function lineFinder(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return offset => {
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return low + 1
  }
}
