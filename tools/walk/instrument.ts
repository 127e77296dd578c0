/** Rewrites a source so that each of its functions reports when it is called. Behaviour stays; only the call trace is added. */
import { parseSource, type SyntaxNode, walk } from '../check/syntax.ts'

export interface TracedFunction {
  readonly file: string
  readonly line: number
  readonly name: string
}

/** A function of trace.ts, which the bundler hands to every file that names it. */
const reporter = 'traced'

interface Edit {
  readonly at: number
  readonly text: string
}

/** `functions` grows by those of this file; a function's number is its place in it. */
export function instrument(file: string, text: string, functions: TracedFunction[]): string {
  const source = parseSource(file, text)
  const edits: Edit[] = []
  walk(source.program, (node, ancestors) => {
    if (!isTraceable(node, ancestors.at(-1))) return
    const number = functions.push({ file, line: source.lineAt(node.start), name: nameOf(node, ancestors) }) - 1
    edits.push(...wrap(node, number))
  })
  // From the end, so that positions stay right; at one place, such as an empty body, what opens comes to stand first.
  const ordered = edits.map((edit, order) => ({ ...edit, order })).sort((a, b) => b.at - a.at || b.order - a.order)
  return ordered.reduce((all, { at, text: added }) => all.slice(0, at) + added + all.slice(at), text)
}

/** Generators are left out: an arrow function cannot yield for them. So are constructors, which only errors have here. */
function isTraceable(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  if (!['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(node.type)) return false
  if (node['generator'] === true || node['body'] === null) return false
  return !(parent?.type === 'MethodDefinition' && parent['kind'] === 'constructor')
}

/** An arrow function inside: it has the `this` and the `arguments` of the function around it. */
function wrap(node: SyntaxNode, number: number): Edit[] {
  // The parser gives every function a body; those without one were left out above.
  const body = node['body'] as SyntaxNode
  const call = `${reporter}(${number}, ${node['async'] === true ? 'async ' : ''}() => `
  if (body.type !== 'BlockStatement')
    return [
      { at: body.start, text: `${call}(` },
      { at: body.end, text: '))' },
    ]
  return [
    { at: body.start + 1, text: ` return ${call}{` },
    { at: body.end - 1, text: '}) ' },
  ]
}

function nameOf(node: SyntaxNode, ancestors: readonly SyntaxNode[]): string {
  const own = identifier(node['id'])
  if (own !== undefined) return own
  for (const ancestor of ancestors.toReversed()) {
    if (['VariableDeclarator', 'FunctionDeclaration'].includes(ancestor.type)) {
      const name = identifier(ancestor['id'])
      if (name !== undefined)
        return ancestor.type === 'VariableDeclarator' && ancestor['init'] === node ? name : `${name} › λ`
    }
    if (['Property', 'MethodDefinition', 'PropertyDefinition'].includes(ancestor.type)) {
      const name = identifier(ancestor['key'])
      if (name !== undefined) return ancestor['value'] === node ? name : `${name} › λ`
    }
  }
  return 'λ'
}

function identifier(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null || !('name' in node)) return undefined
  return typeof node.name === 'string' ? node.name : undefined
}
