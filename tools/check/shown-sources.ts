// A document shows a file of the repository, word for word:
//
//   <!-- source: examples/orms/src/knex.ts -->     above a block
//
// The file itself is compiled and tested, so the block is only compared with it; with --update it is written anew.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readText } from './files.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { type Fence, fencesOf, listDocuments } from './markdown.ts'

export function sourceOf({ directives }: Fence): string | undefined {
  return directives.map(directive => /^source:\s*(\S+)$/.exec(directive)?.[1]).find(source => source !== undefined)
}

export function checkSources({ root, update }: CheckOptions): Finding[] {
  return listDocuments(root).flatMap(file => {
    const findings: Finding[] = []
    const rows = readText(root, file).split('\n')
    // From the end, so that what is written leaves the lines before it where they are.
    for (const fence of fencesOf(rows.join('\n')).toReversed()) {
      const source = sourceOf(fence)
      if (source === undefined) continue
      const at = { file, line: fence.firstLine }
      if (!existsSync(join(root, source))) {
        findings.push({ ...at, message: `shows ${source}, which does not exist: correct the path` })
        continue
      }
      const code = readText(root, source).trimEnd()
      if (code === fence.code) continue
      // A block without a line has no code, as one with an empty line.
      const length = rows.slice(fence.firstLine - 1).findIndex(row => row.startsWith('```'))
      rows.splice(fence.firstLine - 1, length, ...code.split('\n'))
      if (!update)
        findings.push({ ...at, message: `differs from ${source}: run \`npm run check -- --only docs --update\`` })
    }
    if (update) writeFileSync(join(root, file), rows.join('\n'))
    return findings
  })
}
