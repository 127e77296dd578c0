import { examine, type Examined } from '../doctor/examine.ts'
import type { Finding } from '../doctor/finding.ts'
import type { Colors } from '../output/colors.ts'
import type { CommandSpec } from '../program/command.ts'
import { exits } from '../program/exit.ts'

export const doctor: CommandSpec = {
  path: 'doctor',
  summary: 'looks at the real database, and names what is wrong and its cure; exits with 1 on FAIL',
  options: [{ flags: '--fix-sql', summary: 'print the statements that repair it, and nothing else' }],
  async run({ flags, context }) {
    const { out } = context
    const found = await examine(context)
    const statements = found.flatMap(({ sql = [] }) => sql)
    if (flags.has('fix-sql')) out.value(statements, () => statements)
    else out.value(found, () => found.flatMap(finding => linesOf(finding, out.paint)))
    const failed = found.filter(({ verdict }) => verdict === 'FAIL').length
    const warned = found.filter(({ verdict }) => verdict === 'warn').length
    out.talk(`${failed} failed, ${warned} warnings`)
    return failed === 0 ? exits.done : exits.no
  },
}

function linesOf({ check, verdict, text, cure, sql = [] }: Examined, paint: Colors): readonly string[] {
  const shown = painted(verdict, paint)(verdict.padEnd(4))
  const indent = ' '.repeat(19)
  return [
    `${shown}  ${check.padEnd(12)} ${text}`,
    ...(cure === undefined ? [] : [`${indent}cure: ${cure}`]),
    ...sql.flatMap(statement => statement.split('\n').map(line => `${indent}  ${line}`)),
  ]
}

function painted(verdict: Finding['verdict'], { good, warn, bad, dim }: Colors): (text: string) => string {
  return { ok: good, warn, FAIL: bad, skip: dim }[verdict]
}
