/**
 * Declarations of a package without what no user can name: whatever its subpaths export stays, with all that those declarations mention. The compiler
 * declares every export of every module, most of which serve other modules of the package only.
 */
import { dirname, join } from 'node:path'
import { isNode, parseSource, stringValue, type SyntaxNode, walk } from '../check/syntax.ts'

/** Texts by path. A path that is not there is outside the package. */
export type Texts = ReadonlyMap<string, string>

/** `entries`: the declarations of the subpaths, in `texts`. What comes back has the files that are still needed. */
export function pruneDeclarations(texts: Texts, entries: readonly string[]): Map<string, string> {
  const modules = new Map([...texts].map(([file, text]) => [file, moduleOf(file, text)]))
  const kept = new Map<Statement, Set<string>>()
  const queue: Reference[] = entries.map(file => ({ file, name: everything }))
  const seen = new Set<string>()
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const { file, name } = next
    const module = modules.get(file)
    if (module === undefined || seen.has(`${file} ${name}`)) continue
    seen.add(`${file} ${name}`)
    for (const statement of module.filter(each => isWanted(each, name))) {
      const names = kept.get(statement) ?? new Set()
      kept.set(statement, names.add(name))
      queue.push(...statement.leadsTo(name))
    }
  }
  return new Map(
    [...modules].flatMap(([file, module]) => {
      const text = module.map(statement => statement.textFor(kept.get(statement))).join('')
      return text === '' ? [] : [[file, `${text.trimStart()}\n`] as const]
    }),
  )
}

/** A name in a module: one that it declares, imports or exports. */
type Reference = { readonly file: string; readonly name: string }

const everything = '*'

interface Statement {
  /** The names that it gives the module. `*`: those of another one. */
  readonly gives: ReadonlySet<string>
  /** It exports them; what it does not export is wanted only by its own module. */
  readonly isExport: boolean
  leadsTo(name: string): readonly Reference[]
  /** `names`: those that were asked for. Undefined: none, and nothing is left of it. */
  textFor(names: ReadonlySet<string> | undefined): string
}

function isWanted({ gives, isExport }: Statement, name: string): boolean {
  return gives.has(name) || (name === everything ? isExport : gives.has(everything))
}

function moduleOf(file: string, text: string): readonly Statement[] {
  const { body } = parseSource(file, text).program as unknown as { readonly body: readonly SyntaxNode[] }
  return body.map((node, at) => {
    // With the comment before it.
    const whole = text.slice(at === 0 ? 0 : body[at - 1]?.end, node.end)
    const specifiers = Array.isArray(node.specifiers) ? (node.specifiers as readonly SyntaxNode[]) : []
    const isFrom = node.source !== null && node.source !== undefined
    if (isFrom || specifiers.length > 0) return linkOf({ file, text, node, whole, specifiers })
    return declarationOf(file, node, whole)
  })
}

interface LinkParts {
  readonly file: string
  readonly text: string
  readonly node: SyntaxNode
  readonly whole: string
  readonly specifiers: readonly SyntaxNode[]
}

/** An import, or an export of what is declared elsewhere. */
function linkOf({ file, text, node, whole, specifiers }: LinkParts): Statement {
  const from = stringValue(node.source)
  const target = from === undefined ? file : declarationFile(file, from)
  const links = specifiers.map(specifier => ({
    given: nameOf(specifier.exported ?? specifier.local),
    // A namespace has everything; a default and a name have themselves.
    wanted: specifier.type === 'ImportNamespaceSpecifier' ? everything : nameOf(specifier.imported ?? specifier.local),
    text: text.slice(specifier.start, specifier.end),
    isNamed: specifier.type === 'ImportSpecifier' || specifier.type === 'ExportSpecifier',
  }))
  const isAll = node.type === 'ExportAllDeclaration'
  const isAsked = (names: ReadonlySet<string>, given: string) => names.has(given) || (isExport && names.has(everything))
  const isExport = node.type !== 'ImportDeclaration'
  return {
    gives: new Set(isAll ? [everything] : links.map(({ given }) => given)),
    isExport,
    leadsTo: name =>
      isAll
        ? [{ file: target, name }]
        : links
            .filter(({ given }) => given === name || (isExport && name === everything))
            .map(({ wanted }) => ({ file: target, name: wanted })),
    textFor(names) {
      if (names === undefined) return ''
      const left = links.filter(({ given }) => isAsked(names, given))
      if (left.length === links.length || links.some(({ isNamed }) => !isNamed)) return whole
      return whole.replace(/\{[^}]*\}(?=[^{}]*$)/, `{ ${left.map(link => link.text).join(', ')} }`)
    },
  }
}

/** Whatever is declared here, with all the names that it mentions. */
function declarationOf(file: string, node: SyntaxNode, whole: string): Statement {
  const declared = isNode(node.declaration) ? node.declaration : node
  const gives = new Set(declaredNames(declared))
  const mentions = mentionsOf(file, node, gives)
  // `export {}`, and what is declared for other modules, give no name and are of the module itself.
  const isOfModule = gives.size === 0
  return {
    gives: isOfModule ? new Set([everything]) : gives,
    isExport: node.type.startsWith('Export') || isOfModule,
    leadsTo: () => mentions,
    textFor: names => (names === undefined ? '' : whole),
  }
}

function declaredNames(declared: SyntaxNode): string[] {
  if (declared.type === 'TSModuleDeclaration') return []
  if (isNode(declared.id)) return [nameOf(declared.id)]
  const declarations = Array.isArray(declared.declarations) ? (declared.declarations as readonly SyntaxNode[]) : []
  return declarations.map(({ id }) => nameOf(id))
}

/** More than it means: the name of a property counts as well, and leads nowhere unless the module has such a name. */
function mentionsOf(file: string, node: SyntaxNode, own: ReadonlySet<string>): readonly Reference[] {
  const names = new Set<string>()
  const imported: Reference[] = []
  walk(node, each => {
    if (each.type === 'Identifier') names.add(String(each.name))
    const from = each.type === 'TSImportType' ? stringValue(each.source ?? each.argument) : undefined
    if (from !== undefined) imported.push({ file: declarationFile(file, from), name: everything })
  })
  return [...imported, ...[...names].filter(name => !own.has(name)).map(name => ({ file, name }))]
}

function nameOf(node: unknown): string {
  if (!isNode(node)) return ''
  return typeof node.name === 'string' ? node.name : (stringValue(node) ?? '')
}

/** `./a.js` and `./a.ts` mean ./a.d.ts. */
function declarationFile(file: string, from: string): string {
  return from.startsWith('.') ? join(dirname(file), from).replace(/\.[jt]s$/, '.d.ts') : from
}
