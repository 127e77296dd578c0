/** How the shop settles a charge whose answer was lost: by webhook, look-up and ledger comparison, at short intervals. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type DeferredOperation, type GuardedOperation, json, type Outcome, type PhasedOperation } from 'latchkey'
import { createReconciler, type Reconciler, standardWebhooks, type EvidenceInput } from 'latchkey/reconcile'
import type { WorkersHost } from 'latchkey/workers'
import type { Charge, ChargeEvent } from '../../../examples/payments/src/charge.ts'
import type { ChargeAnswer, ProviderClient } from './provider-client.ts'
import { type Asked, isBooksOnly, type OwnEntry, ownEntries, recordEffect, upsertMoney } from './shop.ts'

export interface Settling<C> {
  readonly latchkey: WorkersHost<unknown>
  readonly phased: readonly (PhasedOperation<Asked, C> | DeferredOperation<Asked, C>)[]
  readonly payouts: GuardedOperation<C>
  readonly provider: ProviderClient
  readonly pool: pg.Pool
  readonly webhookSecret: string
  readonly quarantineMs: number
}

/** The first look-up is late enough for a prompt webhook to precede it. A row is never parked here: the provider always recovers. */
const backoffMs = [2_500, ...Array.from({ length: 500 }, () => 2_000)]
/** Charges that appear only in the ledger at first can be looked up after this. */
const searchLagMs = 20_000
/** One for all processes, and one per process: after a kill in the middle of it the first waits for a minute, which may be the whole run. */
const ledgers = ['books', `books-${process.pid}`]
const compareEveryMs = 3_000
const pageSize = 500

export function settleUnknowns<C>(settling: Settling<C>): {
  reconcile: Reconciler
  onWebhook(request: Request): Promise<Response>
} {
  const { latchkey, webhookSecret } = settling
  const reconcile = createReconciler(latchkey)
  registerLookups(reconcile, settling)
  const onWebhook = reconcile.webhook<ChargeEvent>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [webhookSecret] }),
    evidence: ({ data }) => evidenceOf(data),
  })
  for (const name of ledgers) compareBooks(reconcile, name, settling)
  return { reconcile, onWebhook }
}

function registerLookups<C>(reconcile: Reconciler, settling: Settling<C>): void {
  const { phased, payouts, provider, pool, quarantineMs } = settling
  const options = { quarantineMs, backoffMs, timeoutMs: 2_000 }
  for (const operation of phased) {
    reconcile.register<Asked>(operation, {
      ...options,
      async lookup({ id, key, input, effect, unknownForMs, signal }) {
        if (effect.name === recordEffect) {
          const table = operation.name === 'refunds.create' ? 'refunds' : 'payments'
          return { kind: 'happened', value: await upsertMoney(pool, table, { ...input, id }) }
        }
        if (isBooksOnly(input.key) && unknownForMs < searchLagMs) return { kind: 'still-unknown' }
        const found = await provider.find(key, signal)
        return found === undefined ? { kind: 'never-happened' } : { kind: 'happened', value: valueOf(found) }
      },
    })
  }
  reconcile.register(payouts, {
    ...options,
    async lookup({ downstreamKey, signal }) {
      const found = await provider.find(downstreamKey('payout'), signal)
      return found === undefined ? { kind: 'never-happened' } : { kind: 'happened', outcome: paidOut(found) }
    },
  })
}

function compareBooks<C>(reconcile: Reconciler, name: string, { pool, provider }: Settling<C>): void {
  reconcile.ledger<OwnEntry, Charge>(name, {
    everyMs: compareEveryMs,
    ours: () => ourEntries(pool),
    theirs: signal => theirEntries(provider, signal),
    same: (ours, theirs) => ours.charge === theirs.id,
    prove: ({ ours, theirs }) => (ours?.charge === null && theirs !== undefined ? evidenceOf(theirs) : undefined),
  })
}

async function* ourEntries(pool: pg.Pool): AsyncGenerator<{ key: string; value: OwnEntry }> {
  for (let after = ''; ;) {
    const page = await ownEntries(pool, after, pageSize)
    for (const entry of page) yield { key: entry.reference, value: entry }
    const last = page.at(-1)
    if (last === undefined) return
    after = last.reference
  }
}

/** Payouts have no row of their own. */
async function* theirEntries(
  provider: ProviderClient,
  signal: AbortSignal,
): AsyncGenerator<{ key: string; value: Charge }> {
  const charges = (await provider.all(signal)).map(value => ({ key: value.reference ?? '', value }))
  yield* charges.filter(({ key }) => !isPayout(key)).sort((left, right) => (left.key < right.key ? -1 : 1))
}

function evidenceOf(charge: Charge): EvidenceInput {
  const { reference = '', key: downstreamKey } = charge
  const [, id = ''] = reference.split(' ')
  return isPayout(reference)
    ? { id, verdict: { kind: 'happened', outcome: paidOut(charge) } }
    : { id, downstreamKey, verdict: { kind: 'happened', value: valueOf(charge) } }
}

function isPayout(reference: string): boolean {
  return reference.startsWith('payouts')
}

function valueOf({ id }: Charge): ChargeAnswer {
  return { kind: 'charged', id }
}

function paidOut({ id }: Charge): Outcome {
  return json(201, { charge: id, nonce: randomUUID() })
}
