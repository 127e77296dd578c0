import { readText } from '../files.ts'
import type { Finding } from '../finding.ts'

const README = 'README.md'
/** What a newcomer reads before deciding whether to read on. */
const LINES_MAX = 110

export function readmeFindings(root: string, files: readonly string[]): Finding[] {
  if (!files.includes(README)) return []
  const lines = readText(root, README).replace(/\n$/, '').split('\n').length
  if (lines <= LINES_MAX) return []
  return [{ file: README, message: `README has ${lines} lines, more than ${LINES_MAX}: move details into docs/guides` }]
}
