/** The reconciler of one engine: the look-ups that it registers, and the webhook that it serves. */
import { createReconciler, type Reconciler } from '../../src/reconcile/reconciler.ts'
import { standardWebhooks } from '../../src/reconcile/webhooks/signatures.ts'
import type { EffectVerdict, OutcomeVerdict, EvidenceInput } from '../../src/reconcile/verdict.ts'
import { json } from '../../src/engine/steps/json.ts'
import type { Latchkey } from '../../src/engine/latchkey.ts'
import type { ServerTx } from './transactions.ts'
import type { Offered, Shop } from './operations.ts'
import { type Found, quarantineMs } from './provider.ts'
import { type Message, type MessageBody, secret } from './webhooks.ts'

/** The clocks of processes are up to an hour off. */
const toleranceMs = 7_200_000
/** The last one is past the quarantine. */
const backoffMs = [3_000, 6_000, 12_000, 25_000, 50_000]
const timeoutMs = 3_000

export interface EngineReconciler {
  readonly reconcile: Reconciler
  take(message: Message): Promise<number>
}

export function startReconciler(latchkey: Latchkey<ServerTx, unknown>, offered: Offered, shop: Shop): EngineReconciler {
  const { provider, process, plan } = shop
  const reconcile = createReconciler(latchkey)
  // Where no look-up is ever answered, giving up is to happen within the run.
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
  const handler = reconcile.webhook<MessageBody>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [secret], toleranceMs }),
    evidence: evidenceOf,
  })
  return { reconcile, take: async message => (await handler(requestOf(message))).status }
}

function valueOf(found: Found): EffectVerdict {
  if (found === 'inconclusive') return { kind: 'still-unknown' }
  return found === 'nothing' ? { kind: 'never-happened' } : { kind: found.kind, value: found.result }
}

function outcomeOf(found: Found): OutcomeVerdict {
  if (found === 'inconclusive') return { kind: 'still-unknown' }
  return found === 'nothing' ? { kind: 'never-happened' } : { kind: found.kind, outcome: json(200, found.result) }
}

function evidenceOf({ id, key, intended, kind, result }: MessageBody): EvidenceInput {
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
