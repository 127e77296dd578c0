/**
 * The database of the simulation: a map, virtual time, and each operation of the port as one plain function. Nothing fails
 * or waits here; the network in front of it does.
 */
import type { Outcome } from '../../src/ports/outcome.ts'
import type { EffectDone, Intent } from '../../src/ports/steps.ts'
import type { Claim, ClaimRequest, ClaimResult, EnqueueRequest } from '../../src/ports/store.ts'
import type { EnqueueResult, Failure, LostClaim, OwnerResult, Resumable, Swept } from '../../src/ports/store.ts'
import { evidenceNotes, type Notes } from './model-evidence.ts'
import { lookups } from './model-lookups.ts'
import { grantedFrom, isExpired, isGone, isOverdue, isOwnedBy, isStuck, journalOf, openEffect } from './model-row.ts'
import { type ModelRow, type ModelStep, recordOf } from './model-row.ts'
import { backAgain, settling, unknownRow } from './model-settling.ts'
import { createTables, type Tables, type TablesOptions } from './model-tables.ts'

export type ModelStore = ReturnType<typeof modelStore>

export function modelStore(options: TablesOptions) {
  const tables = createTables(options)
  const notes = evidenceNotes(tables)
  return {
    ...{ ...tables, ...notes, ...claims(tables), ...ends(tables, notes), ...steps(tables), ...care(tables, notes) },
    ...settling(tables, notes),
    ...lookups(tables),
  }
}

function claims({ rows, now, put, granted, working }: Tables) {
  return {
    read: (id: string) => {
      const row = rows.get(id)
      return row && recordOf(row, now())
    },
    claim(request: ClaimRequest): ClaimResult {
      const { id } = request.identity
      const row = rows.get(id)
      const from = grantedFrom(row, request, now())
      if (row !== undefined && from === 'seen') return { kind: 'seen', record: recordOf(row, now()) }
      const after = granted(row, request)
      put(id, after, 'request', `claim from ${from}`)
      const { fence, claimId, attempts: attempt, crashes } = after
      const journal = journalOf(after, now())
      const won = { kind: 'won', claim: { id, fence, claimId }, attempt, crashes } as const
      const granter = from === 'seen' ? 'none' : from
      return journal === undefined ? { ...won, from: granter } : { ...won, from: granter, journal }
    },
    enqueue(request: EnqueueRequest): EnqueueResult {
      const { id } = request.identity
      const row = rows.get(id)
      if (row !== undefined && !isExpired(row, now())) return { kind: 'seen', record: recordOf(row, now()) }
      const after = granted(row, { ...request, recovery: 'resume', leaseMs: 0 })
      put(id, { ...after, state: 'pending', attempts: 0 }, 'request', 'enqueue')
      return { kind: 'queued' }
    },
    heartbeat(claim: Claim, leaseMs: number): OwnerResult {
      const row = working(claim)
      if (row === undefined) return 'claim-lost'
      put(claim.id, { ...row, lockedUntilMs: now() + leaseMs }, 'owner', 'heartbeat')
      return 'written'
    },
    release(id: string, claimId: string): 'released' | 'not-yours' {
      const row = rows.get(id)
      if (row?.state !== 'in_progress' || row.claimId !== claimId) return 'not-yours'
      put(id, { ...row, state: 'failed_retryable', dueAtMs: now() }, 'owner', 'release')
      return 'released'
    },
  }
}

function ends({ rows, now, put, completed }: Tables, { note, isSaidToHaveHappened }: Notes) {
  function releaseLost({ id, claimId }: LostClaim): boolean {
    const row = rows.get(id)
    if (row?.claimId !== claimId || row.recovery === 'resume') return false
    if (row.state === 'failed_retryable') return true
    if (row.state === 'in_progress') {
      put(id, { ...row, state: 'failed_retryable', dueAtMs: now() }, 'owner', 'release')
      return true
    }
    if (row.state !== 'unknown' || isSaidToHaveHappened(id, row.createdAtMs)) return false
    const said = { source: 'late-owner', verdict: { kind: 'never-happened' }, atMs: now() } as const
    note(id, { ...said, applied: true })
    const after = { ...backAgain(row, { dueAtMs: now(), epochs: 0 }), saidBy: 'owner' } as const
    put(id, after, 'late owner', { what: 'release', evidence: said })
    return true
  }

  return {
    releaseMany: (claims: readonly LostClaim[]) => claims.filter(releaseLost).map(({ claimId }) => claimId),
    complete(claim: Claim, outcome: Outcome, retentionMs: number): OwnerResult {
      const row = rows.get(claim.id)
      const said = { source: 'late-owner', verdict: { kind: 'happened', outcome }, atMs: now() } as const
      if (isOwnedBy(row, claim) && row.state === 'completed' && row.saidBy === 'owner') return 'written'
      if (isOwnedBy(row, claim) && row.state === 'in_progress') {
        put(claim.id, completed(row, outcome, retentionMs), 'owner', 'complete')
        return 'written'
      }
      const settles = isOwnedBy(row, claim) && row.state === 'unknown' && openEffect(row) === undefined
      note(claim.id, { ...said, applied: settles })
      if (!settles) return 'claim-lost'
      put(claim.id, completed(row, outcome, retentionMs), 'late owner', { what: 'complete', evidence: said })
      return 'written'
    },
    fail(claim: Claim, { to, errorCode, dueInMs }: Failure): OwnerResult {
      const row = rows.get(claim.id)
      if (!isOwnedBy(row, claim)) return 'claim-lost'
      if (row.state === to) return 'written'
      if (row.state === 'pending' && row.saidBy === 'owner' && to === 'failed_retryable') return 'written'
      const what = `fail ${errorCode}`
      if (row.state === 'in_progress') {
        const dueAtMs = now() + dueInMs
        const failed =
          to === 'unknown' ? unknownRow(row, now()) : { ...backAgain(row, { dueAtMs, epochs: 0 }), state: to }
        put(claim.id, { ...failed, errorCode }, 'owner', what)
        return 'written'
      }
      if (row.state !== 'unknown' || to === 'unknown') return 'claim-lost'
      const said = { source: 'late-owner', verdict: { kind: 'never-happened' }, atMs: now() } as const
      const after = { ...backAgain(row, { dueAtMs: now() + dueInMs, epochs: 0 }), errorCode, saidBy: 'owner' } as const
      note(claim.id, { ...said, applied: true })
      put(claim.id, after, 'late owner', { what, evidence: said })
      return 'written'
    },
    park(claim: Claim, cause: string): OwnerResult {
      const row = rows.get(claim.id)
      if (isOwnedBy(row, claim) && row.parked) return 'written'
      if (!isOwnedBy(row, claim) || row.state !== 'in_progress') return 'claim-lost'
      const parked: ModelRow = { ...row, state: 'failed_retryable', parked: true, dueAtMs: now(), errorCode: cause }
      put(claim.id, parked, 'owner', `park ${cause}`)
      return 'written'
    },
  }
}

function steps({ rows, now, put, working }: Tables) {
  function keep(row: ModelRow, step: ModelStep, { leaseMs, what }: { leaseMs: number; what: string }): OwnerResult {
    const others = row.steps.filter(other => other.position !== step.position)
    put(row.identity.id, { ...row, steps: [...others, step], lockedUntilMs: now() + leaseMs }, 'owner', what)
    return 'written'
  }
  return {
    journal: (id: string) => {
      const row = rows.get(id)
      return row && journalOf(row, now())
    },
    openIntent(claim: Claim, { position, name, epoch, key, windowMs }: Intent, leaseMs: number): OwnerResult {
      const row = working(claim)
      const before = row?.steps.find(step => step.position === position)
      const fits = before === undefined || (before.name === name && before.epoch === epoch && before.state !== 'done')
      if (row === undefined || !fits) return 'claim-lost'
      const openedAtMs = before?.state === 'open' ? before.openedAtMs : now()
      const step = { position, name, epoch, windowMs, openedAtMs, key, keyEpoch: epoch, result: undefined } as const
      return keep(row, { ...step, kind: 'effect', state: 'open' }, { leaseMs, what: `intent ${name}` })
    },
    recordResult(claim: Claim, { position, value: result }: EffectDone, leaseMs: number): OwnerResult {
      const row = working(claim)
      const step = row?.steps.find(other => other.position === position)
      if (row === undefined || step?.kind !== 'effect' || step.state === 'again') return 'claim-lost'
      if (step.state === 'done') return 'written'
      return keep(row, { ...step, state: 'done', result }, { leaseMs, what: `result ${step.name}` })
    },
  }
}

function care({ rows, now, put }: Tables, { drop }: Notes) {
  /** Granted to a worker after its end, and given back: only a request has an input to begin again with. */
  const isEmpty = (row: ModelRow) => row.state !== 'in_progress' && row.work === undefined

  function isResumable(row: ModelRow): boolean {
    if (row.recovery !== 'resume' || isExpired(row, now()) || isEmpty(row)) return false
    return row.state !== 'completed' && grantedFrom(row, row, now()) !== 'seen'
  }

  return {
    sweep({ limit, id }: { readonly limit: number; readonly id?: string }): readonly Swept[] {
      const swept: Swept[] = []
      for (const [rowId, row] of rows) {
        if ((id !== undefined && id !== rowId) || swept.length >= limit || !isOverdue(row, now())) continue
        if (row.recovery === 'resume' && !isStuck(row, now())) continue
        const to = row.recovery === 'rerun' ? 'failed_retryable' : 'unknown'
        const crashed = { ...row, crashes: row.crashes + 1, dueAtMs: now() }
        put(rowId, to === 'unknown' ? unknownRow(crashed, now()) : { ...crashed, state: to }, 'sweeper', 'sweep')
        swept.push({ id: rowId, operation: row.identity.operation, to })
      }
      return swept
    },
    resumable({ limit }: { readonly limit: number }): readonly Resumable[] {
      const found = [...rows.values()].filter(isResumable).slice(0, limit)
      return found.map(({ identity, fingerprint, crashes }) => ({ identity, fingerprint, crashes }))
    },
    reap({ limit }: { readonly limit: number }): number {
      const over = [...rows].filter(([, row]) => isExpired(row, now()) || (isGone(row, now()) && !row.stripped))
      for (const [id, row] of over.slice(0, limit)) {
        drop(id)
        put(id, isGone(row, now()) ? strippedRow(row) : undefined, 'reaper', 'reap')
      }
      return Math.min(over.length, limit)
    },
  }
}

function strippedRow(row: ModelRow): ModelRow {
  const { expiresAtMs, tombstoneMs = 0 } = row
  const without = { outcome: undefined, saidBy: undefined, work: undefined, steps: [] }
  return { ...row, ...without, stripped: true, expiresAtMs: expiresAtMs + tombstoneMs }
}
