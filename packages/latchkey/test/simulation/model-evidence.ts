/** What was found out, kept beside the rows; and the messages that were received, kept apart from them. */
import type { Finding, KeepResult, Subject } from '../../src/ports/reconciliation.ts'
import type { Evidence } from '../../src/ports/store.ts'
import { fits } from './model-settling.ts'
import type { AppliedEvidence, Tables } from './model-tables.ts'

export interface Note extends AppliedEvidence {
  readonly applied: boolean
}

/** It may still be applied. */
export interface Named extends Note {
  readonly evidenceId: string
  readonly subject: Subject
  readonly ref: string
}

export type Notes = ReturnType<typeof evidenceNotes>

export function evidenceNotes({ rows, now }: Tables) {
  const noted = new Map<string, readonly Note[]>()
  const named = new Map<string, Named>()
  const received = new Map<string, { readonly atMs: number; readonly signedAtMs: number }>()
  let numbers = 0

  const note = (id: string, entry: Note) => void noted.set(id, [...(noted.get(id) ?? []), entry])
  const namedOf = (id: string) => [...named.values()].filter(one => one.subject.id === id)

  /** When the message came for the first time; undefined: this delivery of it is known. */
  function receive({ source, ref, delivery }: Finding): number | undefined {
    if (delivery === undefined) return now()
    const known = received.get(`${source} ${ref}`)
    if (known !== undefined && delivery.signedAtMs <= known.signedAtMs) return undefined
    const atMs = known?.atMs ?? now()
    received.set(`${source} ${ref}`, { atMs, signedAtMs: delivery.signedAtMs })
    return atMs
  }

  return {
    note,
    find: (evidenceId: string): Named | undefined => named.get(evidenceId),
    mark(evidence: Named): void {
      named.set(evidence.evidenceId, { ...evidence, applied: true })
    },
    isSaidToHaveHappened: (id: string, sinceMs: number): boolean =>
      namedOf(id).some(({ verdict, atMs }) => verdict.kind !== 'never-happened' && atMs >= sinceMs),
    /** The reaper ends a row's evidence with the row. */
    drop(id: string): void {
      noted.delete(id)
      for (const { evidenceId } of namedOf(id)) named.delete(evidenceId)
    },
    evidenceOf(id: string): readonly Evidence[] {
      return [...(noted.get(id) ?? []), ...namedOf(id)].map(one => ({
        ...{ source: one.source, verdict: one.verdict.kind, atMs: one.atMs, applied: one.applied },
        effect: 'subject' in one ? (one as Named).subject.effect?.name : undefined,
      }))
    },
    keep(subject: Subject, finding: Finding): KeepResult {
      const atMs = receive(finding)
      if (atMs === undefined) return { kind: 'replayed' }
      const row = rows.get(subject.id)
      if (row === undefined || atMs < row.createdAtMs) return { kind: 'no-row' }
      const { source, ref, verdict } = finding
      const known = namedOf(subject.id).find(one => one.source === source && one.ref === ref)
      if (known !== undefined && known.atMs >= row.createdAtMs)
        return { kind: 'duplicate', evidenceId: known.evidenceId }
      // What was said of an earlier life of the key was something else, whatever its name.
      if (known !== undefined) named.delete(known.evidenceId)
      const evidenceId = String((numbers += 1))
      named.set(evidenceId, { evidenceId, subject, source, ref, verdict, atMs, applied: false })
      return { kind: 'kept', evidenceId }
    },
    waiting({ limit }: { readonly limit: number }): readonly { evidenceId: string; operation: string }[] {
      const found: { evidenceId: string; operation: string }[] = []
      for (const evidence of named.values()) {
        const row = rows.get(evidence.subject.id)
        if (evidence.applied || evidence.verdict.kind === 'never-happened' || row === undefined) continue
        if (fits(row, evidence)) found.push({ evidenceId: evidence.evidenceId, operation: row.identity.operation })
      }
      return found.slice(0, limit)
    },
    findEffect: (downstreamKey: string): Subject | undefined => effectOfKey(rows, downstreamKey),
    forgetDeliveries({ olderThanMs, limit }: { readonly olderThanMs: number; readonly limit: number }): number {
      const old = [...received].filter(([, { atMs }]) => atMs <= now() - olderThanMs).slice(0, limit)
      for (const [name] of old) received.delete(name)
      return old.length
    },
  }
}

function effectOfKey(rows: Tables['rows'], downstreamKey: string): Subject | undefined {
  for (const { identity, steps } of rows.values()) {
    const step = steps.find(one => one.key === downstreamKey)
    if (step === undefined) continue
    return { id: identity.id, effect: { position: step.position, name: step.name, epoch: step.keyEpoch } }
  }
  return undefined
}
