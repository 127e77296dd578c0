import { isTest } from '../files.ts'
import type { Finding } from '../finding.ts'
import { LIBRARY } from '../library.ts'
import { dottedName, isNode, walk } from '../syntax.ts'
import type { Source, SyntaxNode } from '../syntax.ts'

const CLOCK = `${LIBRARY}/src/ports/clock.ts`
const RANDOM = new Set(['randomUUID', 'randomBytes', 'randomInt', 'randomFillSync', 'getRandomValues'])
const MEMBERS = /^(?:globalThis\.)?(?:Date\.now|performance\.now|Math\.random|process\.hrtime)$/
const CRYPTO_MEMBERS = new RegExp(`\\b\\w*crypto\\.(?:${[...RANDOM].join('|')})$`, 'i')

/** Time and randomness come in through ports/clock.ts, so that a test can decide both. */
export function clockFindings(source: Source): Finding[] {
  if (!source.file.startsWith(`${LIBRARY}/src/`) || source.file === CLOCK || isTest(source.file)) return []
  const findings: Finding[] = []
  walk(source.program, node => {
    const used = nondeterminism(node)
    if (used === undefined) return
    const line = source.lineAt(node.start)
    findings.push({
      file: source.file,
      line,
      message: `uses ${used}: take it from the clock that is passed in (ports/clock.ts)`,
    })
  })
  return findings
}

function nondeterminism(node: SyntaxNode): string | undefined {
  if (node.type === 'MemberExpression') {
    const name = dottedName(node) ?? ''
    return MEMBERS.test(name) || CRYPTO_MEMBERS.test(name) ? name : undefined
  }
  if (node.type === 'ImportSpecifier') {
    const name = isNode(node.imported) ? String(node.imported.name) : ''
    return RANDOM.has(name) ? name : undefined
  }
  const makesDate = (node.type === 'NewExpression' || node.type === 'CallExpression') && isDate(node.callee)
  return makesDate && Array.isArray(node.arguments) && node.arguments.length === 0 ? 'the current Date' : undefined
}

const isDate = (callee: unknown): boolean => isNode(callee) && callee.type === 'Identifier' && callee.name === 'Date'
