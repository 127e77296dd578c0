/** How the engines of a simulation find out: the look-ups that they register, and what a webhook says to them. */
import { createReconciler, type Reconciler } from '../../src/reconcile/reconciler.ts'
import { standardWebhooks } from '../../src/reconcile/webhooks/signatures.ts'
import type { EffectVerdict, OutcomeVerdict, EvidenceInput } from '../../src/reconcile/verdict.ts'
import { json } from '../../src/engine/steps/json.ts'
import type { Latchkey } from '../../src/engine/latchkey.ts'
import type { ServerTx } from './transactions.ts'
import type { Offered, Shop } from './operations.ts'
import { type Found, quarantineMs } from './provider.ts'
import { type Message, type Said, secret } from './webhooks.ts'

/** The clocks of processes are up to an hour off. */
const toleranceMs = 7_200_000
/** The last one is past the quarantine. */
const backoffMs = [3_000, 6_000, 12_000, 25_000, 50_000]
const timeoutMs = 3_000

export interface Reconciling {
  readonly reconcile: Reconciler
  take(message: Message): Promise<number>
}

export function startReconciling(latchkey: Latchkey<ServerTx, unknown>, offered: Offered, shop: Shop): Reconciling {
  const { provider, process, plan } = shop
  const reconcile = createReconciler(latchkey)
  // Where nobody ever answers, the end is to come within the run.
  const options = { quarantineMs, backoffMs: backoffMs.slice(0, plan.asksInVain ? 3 : undefined), timeoutMs }
  if (plan.lookUps) {
    reconcile.register(offered.hold, {
      ...options,
      lookup: async ({ downstreamKey, createdAtMs }) =>
        outcomeOf(await provider.lookUp(process, { key: downstreamKey('work'), sinceMs: createdAtMs })),
    })
    for (const operation of offered.withEffects) {
      reconcile.register(operation, {
        ...options,
        lookup: async ({ key, createdAtMs }) => valueOf(await provider.lookUp(process, { key, sinceMs: createdAtMs })),
      })
    }
  }
  const handler = reconcile.webhook<Said>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [secret], toleranceMs }),
    evidence: evidenceOf,
  })
  return { reconcile, take: async message => (await handler(requestOf(message))).status }
}

function valueOf(found: Found): EffectVerdict {
  if (found === 'cannot tell') return { kind: 'still-unknown' }
  return found === 'nothing' ? { kind: 'never-happened' } : { kind: found.kind, value: found.result }
}

function outcomeOf(found: Found): OutcomeVerdict {
  if (found === 'cannot tell') return { kind: 'still-unknown' }
  return found === 'nothing' ? { kind: 'never-happened' } : { kind: found.kind, outcome: json(200, found.result) }
}

function evidenceOf({ id, key, intended, kind, result }: Said): EvidenceInput {
  if (kind === 'never-happened') return intended ? { downstreamKey: key, verdict: { kind } } : { id, verdict: { kind } }
  return intended
    ? { downstreamKey: key, id, verdict: { kind, value: result } }
    : { id, verdict: { kind, outcome: json(200, result) } }
}

/** As much of a request as the handler reads: a real one would not keep to microtasks. */
function requestOf({ id, timestamp, signature, body }: Message): Request {
  const headers = new Map([
    ['webhook-id', id],
    ['webhook-timestamp', timestamp],
    ['webhook-signature', signature],
  ])
  const chunks = [body]
  const read = async () => {
    const value = chunks.pop()
    return value === undefined ? { done: true } : { done: false, value }
  }
  return { method: 'POST', headers, body: { getReader: () => ({ read }) } } as unknown as Request
}
