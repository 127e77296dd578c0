/** The values of the application's, for a change of keys. Rows are replaced whole: an unchanged row is the same object. */
import { pageStart } from '../../shared/stored-values/pages.ts'
import { receivedId, type ValueTableName, valueTableNames } from '../../shared/stored-values/rows.ts'
import type { StoredValue, ValuePage, Values } from '../../../ports/faculties/values.ts'
import type { StoredParkedMessage } from '../inbox/index.ts'
import type { StoredMessage } from '../outbox/lanes.ts'
import type { NamedEvidence } from '../reconcile/evidence-and-audit.ts'
import type { Received, Tables } from '../tables.ts'

interface Held {
  readonly value: StoredValue
  /** Writes another value in its place, if what is there is still what was read. */
  replace(after: StoredValue): boolean
}

export function memoryValues(tables: Tables): Values {
  return {
    page: async which => page(tables, which),
    replace: async (before, after) => replace(tables, before, after),
  }
}

/** In memory a table is one page. */
function page(tables: Tables, { after }: { readonly after?: string | undefined }): ValuePage {
  const { table } = pageStart(after, '')
  const next = valueTableNames[valueTableNames.indexOf(table) + 1]
  return { values: held(tables, table).map(({ value }) => value), next }
}

function replace(tables: Tables, before: StoredValue, after: StoredValue): 'replaced' | 'changed' {
  const { table } = pageStart(before.at, '')
  const found = held(tables, table).find(({ value }) => value.at === before.at && isSame(value, before))
  return found?.replace(after) === true ? 'replaced' : 'changed'
}

function isSame(now: StoredValue, before: StoredValue): boolean {
  return JSON.stringify(now) === JSON.stringify(before)
}

function held(tables: Tables, table: ValueTableName): readonly Held[] {
  switch (table) {
    case 'keys':
      return [...tables.rows.values()].flatMap(row => [...ofOutcome(tables, row.id), ...ofDescription(tables, row.id)])
    case 'inputs':
      return [...tables.journals.entries()].flatMap(([id]) => ofInput(tables, id))
    case 'steps':
      return [...tables.journals.entries()].flatMap(([id]) => ofSteps(tables, id))
    case 'evidence':
      return tables.log.allNamed().flatMap(entry => ofEvidence(tables, entry))
    case 'outbox':
      return [...tables.outbox.messages.values()].map(message => ofMessage(tables, message))
    case 'outbox_delivered':
      return [...tables.outbox.downstreamIds].map(([position, text]) => ofDownstreamId(tables, position, text))
    case 'received':
      return [...tables.received].map(([name, message]) => ofReceived(tables, name, message))
    case 'inbox_parked':
      return [...tables.inbox.parked.values()].map(message => ofParked(tables, message))
    case 'key_references':
      return [...tables.references.entries()].flatMap(([id]) => ofReferences(tables, id))
    case 'outcomes':
      return []
  }
}

function ofReferences({ references }: Tables, id: string): readonly Held[] {
  return (references.get(id) ?? []).map((reference, number) => ({
    value: {
      kind: 'reference',
      at: `key_references/${id}/${number}`,
      id,
      index: reference.index,
      sealed: reference.sealed,
    },
    replace(after) {
      const known = references.get(id) ?? []
      if (after.kind !== 'reference' || !known.includes(reference)) return false
      const { index, sealed } = after
      references.set(
        id,
        known.map(each => (each === reference ? { ...each, index, sealed } : each)),
      )
      return true
    },
  }))
}

function ofOutcome({ rows }: Tables, id: string): readonly Held[] {
  const row = rows.get(id)
  if (row?.outcome === undefined) return []
  return [
    {
      value: { kind: 'outcome', at: `keys/${id}/${row.fence}`, id, outcome: row.outcome },
      replace(after) {
        if (after.kind !== 'outcome') return false
        rows.set(id, { ...row, outcome: after.outcome })
        return true
      },
    },
  ]
}

function ofDescription({ rows }: Tables, id: string): readonly Held[] {
  const row = rows.get(id)
  if (row?.description === undefined) return []
  return [
    {
      value: { kind: 'text', at: `keys/${id}/-1`, column: 'description', id, text: row.description },
      replace(after) {
        if (after.kind !== 'text') return false
        rows.set(id, { ...row, description: after.text })
        return true
      },
    },
  ]
}

function ofInput({ journals }: Tables, id: string): readonly Held[] {
  const journal = journals.get(id)
  const input = journal?.input
  if (journal === undefined || input === undefined) return []
  return [
    {
      value: { kind: 'text', at: `inputs/${id}/0`, column: 'input', id, text: input.input },
      replace(after) {
        if (after.kind !== 'text') return false
        journals.set(id, { ...journal, input: { ...input, input: after.text } })
        return true
      },
    },
  ]
}

function ofSteps({ journals }: Tables, id: string): readonly Held[] {
  const journal = journals.get(id)
  return (journal?.steps ?? []).flatMap(step => {
    const { position, value } = step
    if (journal === undefined || value === undefined) return []
    return [
      {
        value: { kind: 'text', at: `steps/${id}/${position}`, column: 'step', id, text: value },
        replace(after: StoredValue) {
          if (after.kind !== 'text') return false
          const steps = journal.steps.map(each => (each === step ? { ...step, value: after.text } : each))
          journals.set(id, { ...journal, steps })
          return true
        },
      },
    ]
  })
}

function ofEvidence(tables: Tables, entry: NamedEvidence): readonly Held[] {
  const { source, ref } = entry
  const replaceRef = (after: StoredValue) => after.kind === 'ref' && tables.log.rename(entry, after.ref)
  const named: Held = { value: { kind: 'ref', at: placeOf(entry), source, ref }, replace: replaceRef }
  return [...ofFound(tables, entry), named]
}

function placeOf({ id, evidenceId }: NamedEvidence): string {
  return `evidence/${id}/${evidenceId}`
}

function ofFound({ log }: Tables, entry: NamedEvidence): readonly Held[] {
  const { id, found } = entry
  const at = placeOf(entry)
  if (found.kind === 'never-happened') return []
  if ('outcome' in found) {
    const replaceOutcome = (after: StoredValue) =>
      after.kind === 'outcome' && log.replaceFound(entry, { ...found, outcome: after.outcome })
    return [{ value: { kind: 'outcome', at, id, outcome: found.outcome }, replace: replaceOutcome }]
  }
  if (found.value === undefined) return []
  const replaceText = (after: StoredValue) =>
    after.kind === 'text' && log.replaceFound(entry, { ...found, value: after.text })
  return [{ value: { kind: 'text', at, column: 'step', id, text: found.value }, replace: replaceText }]
}

/** By the name that `receive` gives it. */
function ofReceived({ received }: Tables, name: string, message: Received): Held {
  const [source = '', ref = ''] = JSON.parse(name) as readonly string[]
  return {
    value: { kind: 'ref', at: `received/${receivedId(source, ref)}/0`, source, ref },
    replace(after) {
      if (after.kind !== 'ref') return false
      const renamed = JSON.stringify([source, after.ref])
      // Named again meanwhile, under the name that comes: that one stays.
      if (received.has(renamed)) return false
      received.delete(name)
      received.set(renamed, message)
      return true
    },
  }
}

function ofMessage({ outbox }: Tables, message: StoredMessage): Held {
  const { position, topic, aggregate, dedupId, payload, headers } = message
  const shown = { topic, aggregate, dedupId, payload, headers }
  return {
    value: { kind: 'message', at: `outbox//${position}`, message: shown },
    replace(after) {
      if (after.kind !== 'message') return false
      outbox.replace({ ...message, payload: after.message.payload, headers: after.message.headers })
      return true
    },
  }
}

function ofParked({ inbox }: Tables, message: StoredParkedMessage): Held {
  const { id, headers, payload } = message
  return {
    value: { kind: 'parked', at: `inbox_parked/${id}/0`, id, headers, payload },
    replace(after) {
      if (after.kind !== 'parked') return false
      inbox.parked.set(id, { ...message, headers: after.headers, payload: after.payload })
      return true
    },
  }
}

function ofDownstreamId({ outbox }: Tables, position: number, text: string): Held {
  return {
    value: { kind: 'text', at: `outbox_delivered//${position}`, column: 'downstream-id', id: String(position), text },
    replace(after) {
      if (after.kind !== 'text') return false
      outbox.downstreamIds.set(position, after.text)
      return true
    },
  }
}
