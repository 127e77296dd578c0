/** The rows of the model, and the two ways in which a row becomes another that are needed in more than one place. */
import type { Actor } from '../../src/engine/rules/transitions.ts'
import type { Outcome } from '../../src/ports/outcome.ts'
import type { EvidenceSource, FoundVerdict } from '../../src/ports/reconciliation.ts'
import type { WorkInput } from '../../src/ports/steps.ts'
import type { AtomicRequest, Claim, ClaimRequest } from '../../src/ports/store.ts'
import { isExpired, isOwnedBy, type ModelRow } from './model-row.ts'

/** Every change of a row is told, with who made it. */
export interface Change {
  readonly id: string
  readonly before: ModelRow | undefined
  readonly after: ModelRow | undefined
  readonly by: Actor
  readonly what: string
  /** What it is justified by, if it leaves `unknown`. */
  readonly evidence?: AppliedEvidence
}

export interface AppliedEvidence {
  readonly source: EvidenceSource
  readonly verdict: FoundVerdict
  /** When it was found. */
  readonly atMs: number
}

export type Why = Pick<Change, 'what' | 'evidence'>

export interface Tables {
  readonly rows: ReadonlyMap<string, ModelRow>
  now(): number
  put(id: string, after: ModelRow | undefined, by: Actor, why: string | Why): void
  /** The row after a grant; what an earlier life left behind is no part of it. */
  granted(row: ModelRow | undefined, request: ClaimRequest | AtomicRequest): ModelRow
  completed(row: ModelRow, outcome: Outcome, retentionMs: number): ModelRow
  /** The row, if it is in progress under this claim. */
  working(claim: Claim): ModelRow | undefined
}

export interface TablesOptions {
  readonly now: () => number
  readonly changed: (change: Change) => void
}

export function createTables({ now, changed }: TablesOptions): Tables {
  const rows = new Map<string, ModelRow>()
  const lives = new Map<string, number>()
  return {
    rows,
    now,
    put(id, after, by, why) {
      const before = rows.get(id)
      if (after === undefined) rows.delete(id)
      else rows.set(id, after)
      changed({ id, before, after, by, ...(typeof why === 'string' ? { what: why } : why) })
    },
    granted(row, request) {
      const { id } = request.identity
      const before = row === undefined || isExpired(row, now()) ? undefined : row
      if (before === undefined) lives.set(id, (lives.get(id) ?? 0) + 1)
      const { work = 'work' in request ? request.work : undefined, deadlineAtMs = deadlineOf(work, now()) } =
        before ?? {}
      return {
        identity: request.identity,
        life: lives.get(id) ?? 0,
        state: 'in_progress',
        recovery: 'recovery' in request ? request.recovery : 'rerun',
        fingerprint: request.fingerprint,
        fence: (row?.fence ?? 0) + 1,
        claimId: request.claimId,
        attempts: (before?.attempts ?? 0) + 1,
        crashes: (before?.crashes ?? 0) + (before?.state === 'in_progress' ? 1 : 0),
        parked: false,
        lockedUntilMs: now() + ('leaseMs' in request ? request.leaseMs : 0),
        dueAtMs: now(),
        createdAtMs: before?.createdAtMs ?? now(),
        completedAtMs: undefined,
        expiresAtMs: now() + ('expiresInMs' in request ? request.expiresInMs : request.retentionMs),
        tombstoneMs: request.tombstoneMs,
        stripped: false,
        errorCode: before?.errorCode,
        outcome: undefined,
        saidBy: undefined,
        work,
        deadlineAtMs,
        steps: before?.steps ?? [],
        doubt: undefined,
      }
    },
    completed(row, outcome, retentionMs) {
      const expiresAtMs = Math.max(row.expiresAtMs, now() + retentionMs)
      const ended = { completedAtMs: now(), expiresAtMs, parked: false, doubt: undefined } as const
      return { ...row, ...ended, state: 'completed', outcome, saidBy: 'owner' }
    },
    working(claim) {
      const row = rows.get(claim.id)
      return isOwnedBy(row, claim) && row.state === 'in_progress' ? row : undefined
    },
  }
}

function deadlineOf(work: WorkInput | undefined, nowMs: number): number | undefined {
  return work?.deadlineInMs === undefined ? undefined : nowMs + work.deadlineInMs
}
