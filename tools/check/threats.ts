// Every row of the threat model leads to a control and to a test that are there.
//
//   column control: [`symbol`](path)           the file exists and declares that name
//   column test:    ["name of a test"](path)   the file holds tests, one of them of that name
//   None yet: why.                             in either column, where there is nothing to link to; it may stand beside links
//
// Links to other documents may stand there as well: they are followed by `check -- --only docs`, and are no control. A table belongs to the model if its first column is called threat.
import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { isTypeScript, readText } from './files.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { isNode, readSource, stringValue, type SyntaxNode, walk } from './syntax.ts'

const MODEL = 'docs/threat-model.md'
const LINK = /\[([^\]]*)\]\(([^)\s]+)\)/g
const DOCUMENT = /\.md(?:#|$)/
const NONE_YET = /\bNone yet: \S.{9,}/
/** Cases are run by the tests that import them; `check -- --only tidy` finds those that none does. */
const HOLDS_TESTS = /\.(?:test|cases)\.ts$|^packages\/conformance\/src\//

type Column = 'control' | 'test'

interface Row {
  readonly line: number
  readonly threat: string
  readonly cells: Readonly<Record<Column, string>>
}

export async function checkThreats({ root }: CheckOptions): Promise<Finding[]> {
  if (!existsSync(join(root, MODEL))) return [{ file: MODEL, message: 'does not exist: the README links to it' }]
  const rows = threatRows(readText(root, MODEL))
  if (rows.length === 0) return [{ file: MODEL, message: 'has no table whose first column is called threat' }]
  return rows.flatMap(({ line, threat, cells }) =>
    (['control', 'test'] as const)
      .flatMap(column => cellFaults(root, column, cells[column]))
      .map(fault => ({ file: MODEL, line, message: `${threat}: ${fault}` })),
  )
}

function threatRows(text: string): Row[] {
  const rows: Row[] = []
  let columns: readonly string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const cells = cellsOf(line)
    if (cells.length === 0) columns = []
    else if (cells[0] === 'threat') columns = cells
    else if (columns.length > 0 && !/^-+:?$/.test(cells[0] ?? '')) {
      const cell = (column: Column) => cells[columns.indexOf(column)] ?? ''
      rows.push({ line: index + 1, threat: cells[0] ?? '', cells: { control: cell('control'), test: cell('test') } })
    }
  }
  return rows
}

function cellsOf(line: string): string[] {
  if (!line.startsWith('|')) return []
  const cells = line.split(/(?<!\\)\|/).slice(1, -1)
  return cells.map(cell => cell.trim())
}

function cellFaults(root: string, column: Column, cell: string): string[] {
  const links = [...cell.matchAll(LINK)].map(([, label = '', target = '']) => ({ label, target }))
  const named = links.filter(({ target }) => !DOCUMENT.test(target))
  if (named.length > 0) return named.flatMap(link => linkFault(root, column, link) ?? [])
  return NONE_YET.test(cell) ? [] : [`names no ${column}: link to it, or write "None yet: " and why`]
}

interface NamedLink {
  readonly label: string
  readonly target: string
}

function linkFault(root: string, column: Column, { label, target }: NamedLink): string | undefined {
  const file = posix.join(posix.dirname(MODEL), target)
  if (!existsSync(join(root, file))) return `links to ${target}, which does not exist`
  const name = (column === 'control' ? /^`(.+)`$/ : /^"(.+)"$/).exec(label)?.[1]
  if (name === undefined) return `links to ${target} without a name: write ${shapeOf(column)}`
  if (column === 'control') return declares(root, file, name) ? undefined : `${file} declares no ${name}`
  if (!HOLDS_TESTS.test(file)) return `${file} holds no tests`
  return stringsOf(root, file).has(name) ? undefined : `${file} has no test "${name}"`
}

function shapeOf(column: Column): string {
  return column === 'control' ? '[`symbol`](path)' : '["name of a test"](path)'
}

/** In files of another kind, the name as a word of its own. */
function declares(root: string, file: string, name: string): boolean {
  if (isTypeScript(file)) return declaredNames(root, file).has(name)
  return readText(root, file)
    .split(/[^\w$-]+/)
    .includes(name)
}

function declaredNames(root: string, file: string): ReadonlySet<string> {
  const names = new Set<string>()
  walk(readSource(root, file).program, node => {
    const name = nameOf(declaredBy(node))
    if (name !== undefined) names.add(name)
  })
  return names
}

function declaredBy({ type, id, key }: SyntaxNode): unknown {
  if (DECLARATIONS.has(type)) return id
  return MEMBERS.has(type) ? key : undefined
}

const DECLARATIONS = new Set([
  'FunctionDeclaration',
  'VariableDeclarator',
  'ClassDeclaration',
  'TSInterfaceDeclaration',
  'TSTypeAliasDeclaration',
])
const MEMBERS = new Set([
  'Property',
  'PropertyDefinition',
  'MethodDefinition',
  'TSPropertySignature',
  'TSMethodSignature',
])

function nameOf(node: unknown): string | undefined {
  return isIdentifier(node) ? String(node.name) : stringValue(node)
}

function isIdentifier(node: unknown): node is SyntaxNode {
  return isNode(node) && node.type === 'Identifier'
}

/** What stands in comments is no test. */
function stringsOf(root: string, file: string): ReadonlySet<string> {
  const strings = new Set<string>()
  walk(readSource(root, file).program, node => {
    const text = stringValue(node)
    if (text !== undefined) strings.add(text)
  })
  return strings
}
