import type { Finding } from '../finding.ts'
import { dottedName, isNode, walk } from '../syntax.ts'
import type { Source, SyntaxNode } from '../syntax.ts'

const FILE_LINES_MAX = 500
const FUNCTION_LINES_MAX = 70

/** Sizes over the limit that are tolerated for now, by `file` or `file#function`. They may fall, never rise. */
export type Ratchet = Record<string, number>

type Measured = { name: string; line: number; lines: number; max: number; what: string }

export function sizeFindings(source: Source, ratchet: Ratchet): Finding[] {
  return measure(source).flatMap(({ name, line, lines, max, what }) => {
    const allowed = Math.max(max, ratchet[name] ?? 0)
    if (lines <= allowed) return []
    return [
      {
        file: source.file,
        line,
        message: `${what} has ${lines} lines, more than ${allowed}: find the seam and split it there`,
      },
    ]
  })
}

/** A tolerance that nothing needs any more has to go, or the size would be free to grow again. */
export function staleRatchetFindings(sources: readonly Source[], ratchet: Ratchet, file: string): Finding[] {
  const sizes = new Map(sources.flatMap(measure).map(measured => [measured.name, measured]))
  return Object.entries(ratchet).flatMap(([name, tolerated]) => {
    const measured = sizes.get(name)
    if (measured === undefined || measured.lines <= measured.max) {
      return [{ file, message: `"${name}" is within the limit now: remove its entry` }]
    }
    return measured.lines < tolerated
      ? [{ file, message: `"${name}" shrank to ${measured.lines} lines: lower its entry` }]
      : []
  })
}

function measure(source: Source): Measured[] {
  const lines = source.text.replace(/\n$/, '').split('\n').length
  const found: Measured[] = [{ name: source.file, line: 1, lines, max: FILE_LINES_MAX, what: 'the file' }]
  walk(source.program, (node, ancestors) => {
    if (!FUNCTIONS.has(node.type) || groupsTests(node, ancestors)) return
    const line = source.lineAt(node.start)
    const name = nameOf(node, ancestors)
    const length = source.lineAt(node.end) - line + 1
    found.push({
      name: `${source.file}#${name}`,
      line,
      lines: length,
      max: FUNCTION_LINES_MAX,
      what: `the function ${name}`,
    })
  })
  return found
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/**
 * The body of a `describe…` is a list of tests, and so is a function named for the tests it registers (`itRunsOnce`): nobody
 * reads them from top to bottom.
 */
function groupsTests(node: SyntaxNode, ancestors: readonly SyntaxNode[]): boolean {
  if (/^it[A-Z]/.test(nameOf(node, ancestors))) return true
  const call = ancestors.at(-1)
  return (
    call?.type === 'CallExpression' &&
    call.callee !== node &&
    (dottedName(call.callee)?.startsWith('describe') ?? false)
  )
}

function nameOf(node: SyntaxNode, ancestors: readonly SyntaxNode[]): string {
  const owner = ancestors.at(-1)
  const named = [node.id, owner?.id, owner?.key].find(isNode)
  return named === undefined ? 'without a name' : (dottedName(named) ?? 'without a name')
}
