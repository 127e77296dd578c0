/** Finds the row and effect that a webhook or a ledger refers to. */
import type { EffectRef, Subject } from '../ports/reconciliation.ts'
import type { Step } from '../ports/steps.ts'
import { downstreamKey } from '../engine/execution.ts'
import type { ReconcilerContext } from './host.ts'
import type { RowReference } from './verdict.ts'

export interface FoundSubject {
  readonly subject: Subject
  readonly operation: string
  readonly state: string
}

/** Epochs rise by evidence, one at a time; no message refers to one this far back. */
const epochsMax = 1_000

/** Undefined: there is no such row. */
export async function findSubject(
  context: ReconcilerContext,
  reference: RowReference,
): Promise<FoundSubject | undefined> {
  const { id, downstreamKey: key } = reference
  // A store would fail on another spelling, and that would count as an outage.
  if ((id !== undefined && !isUuid(id)) || (key !== undefined && !isUuid(key))) return undefined
  const subject = await (reference.downstreamKey === undefined
    ? byId(context, reference)
    : byKey(context, reference.downstreamKey, id))
  if (subject === undefined) return undefined
  const record = await context.call('read', () => context.store.read(subject.id))
  return record === undefined ? undefined : { subject, operation: record.operation, state: record.state }
}

async function byKey(context: ReconcilerContext, key: string, id: string | undefined): Promise<Subject | undefined> {
  const found = await context.call('find effect', () => context.store.reconciliation.findEffect(key))
  return found === undefined && id !== undefined ? byAbandonedKey(context, id, key) : found
}

/** The store finds the latest key of an effect; the earlier ones are derived from its epochs. */
async function byAbandonedKey(context: ReconcilerContext, id: string, key: string): Promise<Subject | undefined> {
  for (const step of (await effectsOf(context, id)) ?? []) {
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

async function byId(
  context: ReconcilerContext,
  { id, effect }: { id: string; effect?: string },
): Promise<Subject | undefined> {
  const steps = await effectsOf(context, id)
  if (steps === undefined) return undefined
  const step = steps.findLast(one => (effect === undefined ? one.state === 'open' : one.name === effect))
  if (step === undefined) return effect === undefined ? { id, effect: undefined } : undefined
  const { position, name, epoch, state } = step
  // The next epoch has not been tried yet, so this evidence is about the abandoned one.
  return { id, effect: { position, name, epoch: state === 'again' ? Math.max(0, epoch - 1) : epoch } }
}

/** Empty for guarded work, which has no journal. Undefined: this version cannot read the journal. */
async function effectsOf({ store, call }: ReconcilerContext, id: string): Promise<readonly Step[] | undefined> {
  const journal = await call('read journal', async () => store.steps?.readJournal(id))
  if (journal === undefined) return []
  return journal.steps?.filter(({ kind }) => kind === 'effect')
}

function isUuid(text: unknown): boolean {
  return typeof text === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}
