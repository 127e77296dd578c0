import type { Finding } from '../finding.ts'
import { dottedName, walk } from '../syntax.ts'
import type { Source } from '../syntax.ts'

const RUNNERS = new Set(['it', 'test', 'describe', 'suite', 'bench'])

/** A forgotten `.only` hides every other test; a skipped test looks like a promise, but checks nothing. */
export function testMarkFindings(source: Source): Finding[] {
  const findings: Finding[] = []
  walk(source.program, node => {
    if (node.type !== 'MemberExpression') return
    const [runner = '', ...marks] = (dottedName(node) ?? '').split('.')
    const mark = marks.at(-1)
    if (!RUNNERS.has(runner)) return
    const at = { file: source.file, line: source.lineAt(node.start) }
    if (mark === 'only') findings.push({ ...at, message: `${runner}.only hides the other tests: remove ".only"` })
    // The files that find or start real servers may skip where a server cannot run.
    if (mark === 'skip' && !source.file.includes('test/servers')) {
      findings.push({ ...at, message: `${runner}.skip: make it pass, or delete it` })
    }
  })
  return findings
}
