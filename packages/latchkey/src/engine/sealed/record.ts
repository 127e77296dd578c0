/** Rows and journals with their values opened. What cannot be opened makes its row unreadable, and no other. */
import { isLatchkeyError } from '../../ports/errors.ts'
import type { Outcome } from '../../ports/outcome.ts'
import type { Journal, Step, UnreadableJournal } from '../../ports/steps.ts'
import type { KeyRecord } from '../../ports/store.ts'
import type { Keyring } from './keyring.ts'
import { openOutcome } from './outcome.ts'
import { type NotOpened, notOpened, type OpenedText, openText } from './seal.ts'

export type OpenRecord = <R extends KeyRecord | undefined>(record: R) => Promise<KeyRecord | R>

export function recordOpener(ring: Keyring): OpenRecord {
  async function openDescribed(record: KeyRecord): Promise<KeyRecord> {
    const description = await opened(() => openDescription(ring, record))
    if (description?.kind === 'unreadable') return unreadable(record, description.why)
    const outcome = await opened(() => openOwnOutcome(ring, record))
    if (outcome?.kind === 'unreadable') return unreadable(record, outcome.why)
    if (record.state === 'unreadable') return { ...record, description: description?.text }
    return { ...record, description: description?.text, outcome: outcome?.outcome }
  }
  return async record => {
    if (record === undefined) return record
    return record.description === undefined && record.outcome === undefined ? record : openDescribed(record)
  }
}

/** A KMS that does not answer about one row must not look like a store that is down: the circuit would open for all. */
async function opened<T>(open: () => Promise<T | NotOpened>): Promise<T | NotOpened> {
  try {
    return await open()
  } catch (error) {
    if (isLatchkeyError(error, 'store-unavailable')) return notOpened(error.message)
    throw error
  }
}

async function openDescription(
  ring: Keyring,
  { id, description }: KeyRecord,
): Promise<OpenedText | NotOpened | undefined> {
  return description === undefined ? undefined : openText(ring, { identity: id, column: 'description' }, description)
}

async function openOwnOutcome(
  ring: Keyring,
  { id, fence, outcome }: KeyRecord,
): Promise<{ readonly kind: 'opened'; readonly outcome: Outcome } | NotOpened | undefined> {
  if (outcome === undefined) return undefined
  const found = await openOutcome(ring, id, outcome)
  if (found.kind === 'unreadable' || found.fence === undefined || found.fence === fence) return found
  return notOpened(`its outcome belongs to the grant with fence ${found.fence}, and the row has ${fence}`)
}

/** What is expired counts as absent, readable or not. */
function unreadable(record: KeyRecord, why: string): KeyRecord {
  const bare = { ...record, description: undefined, outcome: undefined }
  if (bare.expired) return bare
  return { ...bare, state: 'unreadable', recovery: undefined, why }
}

export async function openJournal(
  ring: Keyring,
  id: string,
  journal: Journal | UnreadableJournal,
): Promise<Journal | UnreadableJournal> {
  if (journal.steps === undefined) return journal
  const input = await openText(ring, { identity: id, column: 'input' }, journal.work.input)
  if (input.kind === 'unreadable') return unreadableJournal(input.why)
  const steps: Step[] = []
  for (const step of journal.steps) {
    const value = await openStep(ring, id, step)
    if (value.kind === 'unreadable') return unreadableJournal(`step ${step.position}: ${value.why}`)
    steps.push(value.step)
  }
  return { ...journal, work: { ...journal.work, input: input.text }, steps }
}

async function openStep(
  ring: Keyring,
  id: string,
  step: Step,
): Promise<{ readonly kind: 'opened'; readonly step: Step } | NotOpened> {
  const { value, position } = step
  if (value === undefined) return { kind: 'opened', step }
  const found = await openText(ring, { identity: id, column: 'step' }, value)
  if (found.kind === 'unreadable') return found
  if (found.binding !== undefined && found.binding !== position)
    return notOpened(`its value was moved from position ${found.binding}`)
  return { kind: 'opened', step: { ...step, value: found.text } }
}

function unreadableJournal(why: string): UnreadableJournal {
  return { work: undefined, overdue: undefined, steps: undefined, why }
}
