/** The table of wrong set-ups in docs/guides/errors.md, made of what each of them really prints. */
import { fileURLToPath } from 'node:url'
import { setups } from '../../test/wrong-setups/setups.ts'
import { run, toolPath } from '../check/process.ts'
import { textBetween, withTextBetween } from '../marked-text.ts'

const marks = { start: '<!-- wrong set-ups: written by `npm run errors` -->', end: '<!-- wrong set-ups: end -->' }
const head = '| mistake | what you see |\n| --- | --- |'
const root = fileURLToPath(new URL('../..', import.meta.url))
const program = 'test/wrong-setups/run-setup.ts'
/** Each is a process of its own, which is mostly loading. */
const togetherMax = 4

/** `url`: of an empty database, which stays empty. */
export async function setupTable(url: string): Promise<string> {
  const rows: string[] = []
  for (let at = 0; at < setups.length; at += togetherMax) {
    const some = setups.slice(at, at + togetherMax)
    rows.push(...(await Promise.all(some.map(({ mistake, code }) => row(url, mistake, code)))))
  }
  return [head, ...rows].join('\n')
}

async function row(url: string, mistake: string, code: string): Promise<string> {
  const { code: exitCode, output } = await run(
    'env',
    [`DATABASE_URL=${url}`, toolPath('tsx'), '--conditions=latchkey-source', program, mistake],
    root,
  )
  if (exitCode !== 0 || output === '') throw new Error(`${mistake}: ended with ${exitCode}, and printed: ${output}`)
  const lines = output.split('\n').filter(line => line.trim() !== '')
  return `| ${mistake}: \`${code}\` | ${lines.map(asCode).join('<br>')} |`
}

/** As it was printed, within a cell. */
function asCode(line: string): string {
  const text = line.trim().replaceAll('|', '\\|')
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``
}

export function tableIn(guide: string): string {
  return textBetween(guide, marks)
}

export function withSetupTable(guide: string, table: string): string {
  return withTextBetween(guide, marks, table)
}
