/**
 * The database of the simulation: a map, virtual time, and each operation of the port as one plain function. Nothing fails
 * or waits here; the network in front of it does.
 */
import type { Outcome } from '../../src/ports/outcome.ts'
import type { EffectDone, Intent } from '../../src/ports/steps.ts'
import type { Claim, ClaimRequest, ClaimResult, Failure, OwnerResult } from '../../src/ports/store.ts'
import type { Resumable, Swept, Verdict } from '../../src/ports/store.ts'
import { grantedFrom, isExpired, isOverdue, isOwnedBy, isStuck, journalOf, recordOf } from './model-row.ts'
import type { ModelRow, ModelStep } from './model-row.ts'
import { createTables, type Tables, type TablesOptions } from './model-tables.ts'

export type ModelStore = ReturnType<typeof modelStore>

export function modelStore(options: TablesOptions) {
  const tables = createTables(options)
  return { ...tables, ...claims(tables), ...ends(tables), ...steps(tables), ...care(tables), ...acts(tables) }
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
      const from = grantedFrom(row, request.fingerprint, now())
      if (row !== undefined && from === 'seen') return { kind: 'seen', record: recordOf(row, now()) }
      const after = granted(row, request)
      put(id, after, 'request', `claim from ${from}`)
      const { fence, claimId, attempts: attempt, crashes } = after
      const journal = journalOf(after, now())
      const won = { kind: 'won', claim: { id, fence, claimId }, attempt, crashes } as const
      const granter = from === 'seen' ? 'none' : from
      return journal === undefined ? { ...won, from: granter } : { ...won, from: granter, journal }
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

function ends({ rows, now, put, completed }: Tables) {
  return {
    complete(claim: Claim, outcome: Outcome, retentionMs: number): OwnerResult {
      const row = rows.get(claim.id)
      if (!isOwnedBy(row, claim)) return 'claim-lost'
      if (row.state === 'completed' && row.answeredBy === 'owner') return 'written'
      if (row.state !== 'in_progress' && row.state !== 'unknown') return 'claim-lost'
      const by = row.state === 'unknown' ? 'late owner' : 'owner'
      put(claim.id, completed(row, outcome, retentionMs), by, 'complete')
      return 'written'
    },
    fail(claim: Claim, { to, errorCode, dueInMs }: Failure): OwnerResult {
      const row = rows.get(claim.id)
      if (!isOwnedBy(row, claim)) return 'claim-lost'
      if (row.state === to) return 'written'
      if (row.state !== 'in_progress' && row.state !== 'unknown') return 'claim-lost'
      const by = row.state === 'unknown' ? 'late owner' : 'owner'
      const kept = to === 'unknown' ? row.steps : again(row.steps, 0)
      put(claim.id, { ...row, state: to, errorCode, dueAtMs: now() + dueInMs, steps: kept }, by, `fail ${errorCode}`)
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
    openIntent(claim: Claim, { position, name, epoch, windowMs }: Intent, leaseMs: number): OwnerResult {
      const row = working(claim)
      const before = row?.steps.find(step => step.position === position)
      const fits = before === undefined || (before.name === name && before.epoch === epoch && before.state !== 'done')
      if (row === undefined || !fits) return 'claim-lost'
      const openedAtMs = before?.state === 'open' ? before.openedAtMs : now()
      const step = { position, name, epoch, windowMs, openedAtMs, result: undefined } as const
      return keep(row, { ...step, kind: 'effect', state: 'open' }, { leaseMs, what: `intent ${name}` })
    },
    recordResult(claim: Claim, { position, result }: EffectDone, leaseMs: number): OwnerResult {
      const row = working(claim)
      const step = row?.steps.find(other => other.position === position)
      if (row === undefined || step?.kind !== 'effect' || step.state === 'again') return 'claim-lost'
      if (step.state === 'done') return 'written'
      return keep(row, { ...step, state: 'done', result }, { leaseMs, what: `result ${step.name}` })
    },
  }
}

function care({ rows, now, put }: Tables) {
  /** Granted to a worker after its end, and given back: only a request has an input to begin again with. */
  const isEmpty = (row: ModelRow) => row.state !== 'in_progress' && row.work === undefined

  function isResumable(row: ModelRow): boolean {
    if (row.recovery !== 'resume' || isExpired(row, now()) || isEmpty(row)) return false
    return row.state !== 'completed' && grantedFrom(row, row.fingerprint, now()) !== 'seen'
  }

  return {
    sweep({ limit, id }: { readonly limit: number; readonly id?: string }): readonly Swept[] {
      const swept: Swept[] = []
      for (const [rowId, row] of rows) {
        if ((id !== undefined && id !== rowId) || swept.length >= limit || !isOverdue(row, now())) continue
        if (row.recovery === 'resume' && !isStuck(row, now())) continue
        const to = row.recovery === 'rerun' ? 'failed_retryable' : 'unknown'
        put(rowId, { ...row, state: to, dueAtMs: now(), crashes: row.crashes + 1 }, 'sweeper', 'sweep')
        swept.push({ id: rowId, operation: row.identity.operation, to })
      }
      return swept
    },
    resumable({ limit }: { readonly limit: number }): readonly Resumable[] {
      const found = [...rows.values()].filter(isResumable).slice(0, limit)
      return found.map(({ identity, fingerprint, crashes }) => ({ identity, fingerprint, crashes }))
    },
    reap({ limit }: { readonly limit: number }): number {
      const expired = [...rows.values()].filter(row => isExpired(row, now())).slice(0, limit)
      for (const { identity } of expired) put(identity.id, undefined, 'reaper', 'reap')
      return expired.length
    },
  }
}

function acts({ rows, now, put, completed }: Tables) {
  return {
    settle(id: string, verdict: Verdict, retentionMs: number): void {
      const row = rows.get(id)
      if (row?.state !== 'unknown') return
      const kept = { ...row, expiresAtMs: Math.max(row.expiresAtMs, now() + retentionMs) }
      const after: ModelRow =
        verdict.kind === 'happened'
          ? { ...completed(kept, verdict.outcome, retentionMs), answeredBy: 'operator' }
          : { ...kept, state: 'failed_retryable', dueAtMs: now(), steps: again(row.steps, 1) }
      put(id, after, 'operator', `settle ${verdict.kind}`)
    },
    unpark(id: string): void {
      const row = rows.get(id)
      if (row === undefined || !row.parked) return
      const expiresAtMs = Math.max(row.expiresAtMs, now() + row.expiresAtMs - row.createdAtMs)
      put(id, { ...row, parked: false, crashes: 0, dueAtMs: now(), expiresAtMs }, 'operator', 'unpark')
    },
  }
}

function again(steps: readonly ModelStep[], epochs: 0 | 1): readonly ModelStep[] {
  return steps.map(step => (step.state === 'open' ? { ...step, state: 'again', epoch: step.epoch + epochs } : step))
}
