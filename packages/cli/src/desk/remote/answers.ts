/** What an answer of the admin API means. */
import { CliError, exits } from '../../program/exit.ts'
import type { ApiAnswer } from './http.ts'

/** The body of a read is the value; that of an act is what it came to. */
export function readOf(answer: ApiAnswer): object {
  return answer.status < 300 ? { kind: 'found', value: answer.body } : refusalOf(answer)
}

export function actOf(answer: ApiAnswer): object {
  // Checked by its content type; the API's own version of the values.
  return answer.status < 300 ? (answer.body as object) : refusalOf(answer)
}

/** Of the routes themselves, and not of the service behind them. */
const ofRoutes: Readonly<Record<string, CliError['exit']>> = {
  'not-authenticated': exits.refused,
  'no-such-route': exits.unreachable,
  'host-not-allowed': exits.unreachable,
  'store-unavailable': exits.unreachable,
  failed: exits.unreachable,
  'in-progress': exits.refused,
  'key-reused': exits.refused,
  'cross-site': exits.refused,
  'body-too-large': exits.usage,
}

/** A problem has the kind of the refusal as its code, and the rest of the refusal beside it. */
function refusalOf({ status, body }: ApiAnswer): object {
  const { code: given, detail, title, ...rest } = (body ?? {}) as Record<string, unknown>
  const code = textOf(given) ?? 'failed'
  const text = [textOf(title), textOf(detail)].filter(part => part !== undefined).join(': ') || `status ${status}`
  const exit = ofRoutes[code]
  if (exit !== undefined) throw new CliError(exit, code, `the server answered ${status}: ${text}`)
  return { why: text, ...rest, kind: code }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
