/** A provider's export as evidence: each of its lines is matched with a row, and says that it happened or that it did not. */
import { isRowId } from '../../engine/request.ts'
import { referenceFault } from '../../engine/run/references.ts'
import type { Actor, EvidenceGiven, ImportFile, SettleGiven } from '../admin.ts'
import { type AdminContext, sees } from '../context.ts'
import { parseCsv } from './csv.ts'
import type { NewBulkRow } from '../../ports/faculties/admin.ts'

/** Of one act on many rows. */
export const bulkRowsMax = 1_000

/** What the plan holds of a line; JSON. */
export interface Imported {
  readonly answer: SettleGiven['answer']
  readonly evidence: EvidenceGiven
  readonly response?: SettleGiven['response']
}

type Line = Readonly<Record<string, string>>

export interface ImportedRows {
  readonly rows: readonly NewBulkRow[]
  readonly excluded: Readonly<Record<string, number>>
}

export async function importedRows(
  context: AdminContext,
  by: Actor,
  file: ImportFile,
): Promise<ImportedRows | { readonly kind: 'invalid'; readonly why: string }> {
  const lines = parseCsv(file.csv)
  if (lines === undefined) return { kind: 'invalid', why: 'the file is not CSV with a header line' }
  const missing = columnsOf(file).find(column => lines[0] !== undefined && !Object.hasOwn(lines[0], column))
  if (missing !== undefined) return { kind: 'invalid', why: `the file has no column ${missing}` }
  const rows = new Map<string, NewBulkRow>()
  const excluded: Record<string, number> = {}
  for (const line of lines) {
    const imported = importedLine(file, line)
    const found = typeof imported === 'string' ? imported : await matchLine(context, by, { file, line, imported })
    const row = typeof found === 'string' ? undefined : found
    const why =
      typeof found === 'string'
        ? found
        : rows.has(found.id)
          ? 'named twice'
          : rows.size >= bulkRowsMax
            ? 'over the limit'
            : undefined
    if (why !== undefined) excluded[why] = (excluded[why] ?? 0) + 1
    else if (row !== undefined) rows.set(row.id, row)
  }
  return { rows: [...rows.values()], excluded }
}

const matchedBy: readonly string[] = ['downstream_key', 'reference', 'id']

/** Why the columns are not said. Undefined: they are. */
export function fileFault({ csv, match, status }: Partial<ImportFile>): string | undefined {
  if (typeof csv !== 'string') return 'file.csv must be the text of the export'
  if (typeof match?.column !== 'string' || !matchedBy.includes(match.by))
    return `file.match must be a column, and by what it matches: ${matchedBy.join(', ')}`
  const isSaid = typeof status?.column === 'string' && [status.happened, status.didNotHappen].every(Array.isArray)
  return isSaid ? undefined : 'file.status must be a column, and its values as happened and didNotHappen'
}

function columnsOf({ match, status, reference, value }: ImportFile): readonly string[] {
  return [match.column, status.column, reference, value].filter(column => column !== undefined)
}

/** A text: why the line is left out. */
function importedLine({ match, status, reference, value }: ImportFile, line: Line): Imported | string {
  const said = line[status.column] ?? ''
  const named = line[reference ?? match.column] || (line[match.column] ?? '')
  if (named === '') return 'no reference'
  if (status.didNotHappen.includes(said))
    return { answer: 'did_not_happen', evidence: { kind: 'export', reference: named } }
  if (!status.happened.includes(said)) return `status ${said.slice(0, 40)}`
  try {
    const shown: unknown = value === undefined ? { id: named, status: said } : JSON.parse(line[value] ?? '')
    return { answer: 'happened', evidence: { kind: 'export', reference: named, value: shown } }
  } catch {
    return 'value is not JSON'
  }
}

interface LineOf {
  readonly file: ImportFile
  readonly line: Line
  readonly imported: Imported
}

async function matchLine(
  context: AdminContext,
  by: Actor,
  { file, line, imported }: LineOf,
): Promise<NewBulkRow | string> {
  const id = await rowOf(context, file, line[file.match.column] ?? '')
  const record = id === undefined ? undefined : await context.call(() => context.store.read(id))
  if (id === undefined || record === undefined || !sees(by, record.scope)) return 'not found'
  if (record.state !== 'unknown') return `row is ${record.state}`
  const notes = await context.call(async () => context.store.admin?.notes(id))
  if (notes === undefined) return 'not found'
  const journal =
    record.recovery === 'resume' ? await context.call(async () => context.store.steps?.readJournal(id)) : undefined
  const hasEffect = journal?.steps?.some(step => step.kind === 'effect' && step.state === 'open') ?? false
  // Guarded work has no effect to give a value to: its clients get the value as their answer.
  const response =
    imported.answer === 'happened' && !hasEffect ? { status: 200, json: imported.evidence.value } : undefined
  const detail: Imported = response === undefined ? imported : { ...imported, response }
  return { id, expected: notes.version, detail: JSON.stringify(detail) }
}

async function rowOf({ store, call }: AdminContext, { match }: ImportFile, text: string): Promise<string | undefined> {
  if (match.by === 'id') return isRowId(text) ? text : undefined
  if (match.by === 'downstream_key') {
    if (!isRowId(text)) return undefined
    return (await call(async () => store.reconciliation?.findEffect(text)))?.id
  }
  if (referenceFault(text) !== undefined) return undefined
  const found = await call(async () => store.references?.find(text, { limit: 2 }))
  // A reference that two rows have says nothing about either.
  return found?.length === 1 ? found[0]?.id : undefined
}
