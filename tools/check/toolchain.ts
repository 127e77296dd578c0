// The three checks that others wrote: the compiler, the linter (.oxlintrc.json) and the formatter (.oxfmtrc.json).
import type { CheckOptions, Finding } from './finding.ts'
import { compilerFindings, run, toolPath } from './process.ts'

/** Everything that runs on Node, and the page that runs in browsers. */
const PROJECTS = ['tsconfig.json', 'packages/console/page/tsconfig.json']

export async function checkTypes({ root }: CheckOptions): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const project of PROJECTS) {
    const ran = await run(toolPath('tsc'), ['-p', project, '--pretty', 'false'], root)
    findings.push(...compilerFindings(ran, project))
  }
  return findings
}

export async function checkLint({ root }: CheckOptions): Promise<Finding[]> {
  const { code, output } = await run(toolPath('oxlint'), ['--type-aware', '--deny-warnings', '-f', 'unix'], root)
  if (code === 0) return []
  const findings = output.split('\n').flatMap(row => {
    const match = /^(.+?):(\d+):\d+: (.*)$/.exec(row)
    return match === null ? [] : [{ file: match[1] ?? '', line: Number(match[2]), message: match[3] ?? '' }]
  })
  return findings.length > 0 ? findings : [{ file: '.oxlintrc.json', message: `oxlint ended with ${code}: ${output}` }]
}

export async function checkFormat({ root }: CheckOptions): Promise<Finding[]> {
  const { code, output } = await run(toolPath('oxfmt'), ['--list-different'], root)
  if (code === 0) return []
  const files = output.split('\n').filter(row => /^\S+\.\w+$/.test(row))
  if (files.length === 0) return [{ file: '.oxfmtrc.json', message: `oxfmt ended with ${code}: ${output}` }]
  return files.map(file => ({ file, message: `is not formatted: run \`npx oxfmt ${file}\`` }))
}
