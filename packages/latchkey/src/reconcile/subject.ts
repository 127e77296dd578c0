/** From the names that a webhook or a ledger gives to the row and effect that they mean. */
import type { EffectRef, Subject } from '../ports/reconciliation.ts'
import type { Step } from '../ports/steps.ts'
import { downstreamKey } from '../engine/execution.ts'
import type { Parts } from './host.ts'
import type { SubjectName } from './verdict.ts'

export interface FoundSubject {
  readonly subject: Subject
  readonly operation: string
  readonly state: string
}

/** Epochs rise by evidence, one at a time; a row that had this many is beyond any message's reach. */
const epochsMax = 1_000

/** Undefined: there is no such row. */
export async function findSubject(parts: Parts, name: SubjectName): Promise<FoundSubject | undefined> {
  const subject = await subjectOf(parts, name)
  if (subject === undefined) return undefined
  const record = await parts.call('read', () => parts.store.read(subject.id))
  return record === undefined ? undefined : { subject, operation: record.operation, state: record.state }
}

async function subjectOf(parts: Parts, name: SubjectName): Promise<Subject | undefined> {
  const key = name.downstreamKey
  // A store would take another spelling for a failure of its own.
  if (name.id !== undefined && !isUuid(name.id)) return undefined
  if (key === undefined) return byId(parts, name)
  if (!isUuid(key)) return undefined
  const found = await parts.call('find effect', () => parts.store.reconciliation.findEffect(key))
  if (found !== undefined || name.id === undefined) return found
  return byGivenUpKey(parts, name.id, key)
}

/** The store knows the latest key of an effect; the earlier ones follow from its epochs. */
async function byGivenUpKey(parts: Parts, id: string, key: string): Promise<Subject | undefined> {
  for (const step of (await effectsOf(parts, id)) ?? []) {
    const effect = effectOfKey(id, step, key)
    if (effect !== undefined) return { id, effect }
  }
  return undefined
}

function effectOfKey(id: string, { position, name, epoch }: EffectRef, key: string): EffectRef | undefined {
  for (let past = epoch; past >= Math.max(0, epoch - epochsMax); past -= 1) {
    if (downstreamKey(id, name, 'uuid', past) === key) return { position, name, epoch: past }
  }
  return undefined
}

async function byId(parts: Parts, { id, effect }: { id: string; effect?: string }): Promise<Subject | undefined> {
  const steps = await effectsOf(parts, id)
  if (steps === undefined) return undefined
  const step = steps.findLast(one => (effect === undefined ? one.state === 'open' : one.name === effect))
  if (step === undefined) return effect === undefined ? { id, effect: undefined } : undefined
  const { position, name, epoch, state } = step
  // Nobody has tried the epoch that comes next: what is told now is about one that was given up.
  return { id, effect: { position, name, epoch: state === 'again' ? Math.max(0, epoch - 1) : epoch } }
}

/** Guarded work has no journal. Undefined: there is one, and this version cannot read what it is about. */
async function effectsOf({ store, call }: Parts, id: string): Promise<readonly Step[] | undefined> {
  const journal = await call('read journal', async () => store.steps?.readJournal(id))
  if (journal === undefined) return []
  return journal.steps?.filter(({ kind }) => kind === 'effect')
}

function isUuid(text: unknown): boolean {
  return typeof text === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}
