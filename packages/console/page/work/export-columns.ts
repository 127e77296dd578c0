/** What the columns of a provider's export probably mean. The person sees the guess, and corrects it. */
import type { ImportFile } from 'latchkey/admin'

export interface ExportGuess {
  readonly columns: readonly string[]
  readonly match: string
  readonly by: ImportFile['match']['by']
  readonly status: string
  readonly reference: string
  readonly happened: string
  readonly didNotHappen: string
}

const happened = ['succeeded', 'success', 'paid', 'captured', 'settled', 'completed']
const didNotHappen = ['not_found', 'failed', 'canceled', 'cancelled', 'voided', 'expired']

export function guessColumns(csv: string): ExportGuess {
  const [head = '', ...rows] = csv
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/, 2_000)
    .map(cells)
  const columns = Array.isArray(head) ? head : []
  const find = (pattern: RegExp) => columns.find(column => pattern.test(column)) ?? ''
  const key = find(/idempotency|downstream/i)
  const reference = find(/^(id|reference|charge|payment|transaction)/i)
  const status = find(/status|state|result/i)
  const at = columns.indexOf(status)
  const seen = new Set(rows.map(row => row[at] ?? '').filter(Boolean))
  const among = (words: readonly string[]) => [...seen].filter(value => words.includes(value.toLowerCase())).join(', ')
  return {
    columns,
    match: key || reference,
    by: key === '' ? 'reference' : 'downstream_key',
    status,
    reference: key === '' ? '' : reference,
    happened: among(happened),
    didNotHappen: among(didNotHappen),
  }
}

/** Only for the guess: the server reads the file itself. */
function cells(line: string): string[] {
  return line.split(/[,;]/).map(cell => cell.trim().replace(/^"(.*)"$/, '$1'))
}

export function listOf(text: string): string[] {
  return text
    .split(',')
    .map(each => each.trim())
    .filter(Boolean)
}
