// Every option of the library is in a guide, in code: a reader who looks for it finds more than its type.
//
// The options are read from their checks, `const x: ChecksOf<Options> = { … }`, of which the compiler demands one for each.
import { isTest, isTypeScript, listFiles, readText } from './files.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { codeOf } from './markdown.ts'
import { isNode, readSource, type Source, type SyntaxNode, walk } from './syntax.ts'

const LIBRARY = 'packages/latchkey/src'
const GUIDES = 'docs/guides'
const CHECK_TYPES = new Set(['ChecksOf', 'ChecksFor'])

export async function checkDocumentedOptions({ root }: CheckOptions): Promise<Finding[]> {
  const guides = listFiles(root, GUIDES).filter(file => file.endsWith('.md'))
  const words = new Set(guides.flatMap(file => codeOf(readText(root, file)).match(/[\w$]+/g) ?? []))
  const sources = listFiles(root, LIBRARY).filter(file => isTypeScript(file) && !isTest(file))
  return sources
    .flatMap(file => optionsOf(readSource(root, file)))
    .filter(({ name }) => !words.has(name))
    .map(({ file, line, name }) => ({
      file,
      line,
      message: `the option ${name} is in no guide: show it in ${GUIDES}, where a reader would look for it`,
    }))
}

export interface NamedOption {
  readonly file: string
  readonly line: number
  readonly name: string
}

export function optionsOf(source: Source): NamedOption[] {
  const options: NamedOption[] = []
  walk(source.program, (node, ancestors) => {
    if (node.type !== 'Property' || !ancestors.some(isChecks) || ancestors.some(isWrittenOut)) return
    const name = nameOf(node.key)
    if (name !== undefined) options.push({ file: source.file, line: source.lineAt(node.start), name })
  })
  return options
}

/** One check, whose members are no options: `{ …text, fits: … }`. */
function isWrittenOut({ type, properties }: SyntaxNode): boolean {
  if (type !== 'ObjectExpression' || !Array.isArray(properties)) return false
  return properties.some(each => isNode(each) && nameOf(each.key) === 'fits')
}

/** `x: ChecksOf<…> = …` */
function isChecks({ type, id }: SyntaxNode): boolean {
  if (type !== 'VariableDeclarator' || !isNode(id) || !isNode(id.typeAnnotation)) return false
  const { typeAnnotation } = id.typeAnnotation
  return isNode(typeAnnotation) && CHECK_TYPES.has(nameOf(typeAnnotation.typeName) ?? '')
}

function nameOf(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Identifier' ? String(node.name) : undefined
}
