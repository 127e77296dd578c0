/** Takes a provider's webhooks as evidence: verified, deduplicated, stored, applied. A fetch handler, for every adapter. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { isLatchkeyError, misconfigured } from '../../ports/errors.ts'
import { anything, callable } from '../../ports/option-kinds.ts'
import { within } from '../../engine/store/call.ts'
import { present } from '../evidence.ts'
import type { ReconcilerContext } from '../host.ts'
import type { VerifyWebhook } from './signatures.ts'
import { findSubject } from '../find-subject.ts'
import { type EvidenceInput, provenVerdict } from '../verdict.ts'
import { failed, notPost, received, refused, type RefusedWhy, storeDown, tooLarge } from './answer.ts'

export interface WebhookOptions<Event> {
  /** A stable name for the sender, of at most 64 characters: messages are deduplicated under it. */
  readonly name: string
  /** `standardWebhooks({ secrets })`, `stripeWebhooks({ secrets })`, or a function of your own. */
  readonly verify: VerifyWebhook
  /**
   * Which row a genuine event is about, and its verdict. Return undefined for events that concern no row. It may read but must not write: a
   * message may be delivered more than once. A throw is answered with 500, so that the sender retries.
   */
  readonly evidence: (event: Event) => EvidenceInput | undefined | Promise<EvidenceInput | undefined>
}

/** For any server with fetch's Request and Response; for Node's own, wrap it in `nodeWebhook`. Mount it before body parsers. */
export type WebhookHandler = (request: Request) => Promise<Response>

/** Responses that `nodeWebhook` gives without calling the handler, counted as the handler's own. */
export interface WebhookHost {
  /** `method`: one that fetch forbids. */
  refuse(why: 'malformed' | 'method'): Response
  fail(error: unknown): Response
}

const hosts = new WeakMap<WebhookHandler, WebhookHost>()
/** For a handler that the application has wrapped: it has no telemetry to count with. */
const silentHost: WebhookHost = { refuse: why => (why === 'method' ? notPost() : refused(why)), fail: failed }

export function hostOf(handler: WebhookHandler): WebhookHost {
  return hosts.get(handler) ?? silentHost
}

export const webhookBytesMax = 1_048_576
/** Senders give up after 5 to 30 s and retry. */
const evidenceMsMax = 10_000

const webhookChecks: ChecksOf<WebhookOptions<unknown>> = { name: anything, verify: callable, evidence: callable }

function checked<Event>(options: WebhookOptions<Event>): WebhookOptions<Event> {
  checkOptions('webhook', options, webhookChecks)
  const { name, verify, evidence } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw misconfigured(`webhook: name must be 1 to 64 letters, digits, '.', '_' or '-' (got ${JSON.stringify(name)})`)
  }
  if (verify === undefined) {
    throw misconfigured(`webhook ${name} needs verify: standardWebhooks({ secrets }) or stripeWebhooks({ secrets })`)
  }
  if (evidence === undefined) throw misconfigured(`webhook ${name} needs evidence: a function of the event`)
  return options
}

export function webhookHandler<Event>(context: ReconcilerContext, options: WebhookOptions<Event>): WebhookHandler {
  const { name, verify, evidence } = checked(options)

  function refuse(why: RefusedWhy): Response {
    context.telemetry.count('reconcile.refused', { detail: `${name}: ${why}` })
    return why === 'too-large' ? tooLarge() : refused(why)
  }

  async function receive(request: Request): Promise<Response> {
    const body = await readBounded(request.body, webhookBytesMax)
    if (body === 'too-large') return refuse(body)
    const header = (field: string) => request.headers.get(field) ?? undefined
    const verified = await verify({ header, body, nowMs: context.clock.nowMs() })
    if (verified.kind === 'refused') return refuse(verified.why)
    // The signature is valid, so the event has the type that the application declares for this sender.
    const given = await within(context.clock, evidenceMsMax, async () => evidence(verified.event as Event))
    if (given === undefined) return received()
    const what = `the verdict of the webhook ${name}`
    // First without a row, so that a wrong verdict fails whatever the row; then with its operation's outcome version.
    provenVerdict(what, given?.verdict, 0)
    const found = await findSubject(context, given)
    if (found === undefined) return unknownRow()
    const { subject, operation } = found
    const { id, signedAtMs } = verified
    const verdict = provenVerdict(what, given.verdict, context.retentionOf(operation).outcomeVersion)
    const finding = { source: 'webhook', ref: `${name}:${id}`, verdict, delivery: { signedAtMs } } as const
    // It was true when it was signed.
    const ageMs = () => Math.max(0, context.clock.nowMs() - signedAtMs)
    const presented = await present(context, { subject, operation, finding, ageMs })
    if (presented.kind === 'replayed') return refuse('replayed')
    // Stored evidence is received, whether it could be applied or not.
    return presented.kind === 'no-row' ? unknownRow() : received()
  }

  /** Reported, because it may be about an abandoned downstream key; accepted, because another delivery would find no more. */
  function unknownRow(): Response {
    context.telemetry.count('reconcile.refused', { detail: `${name}: no-row` })
    context.telemetry.report('a webhook refers to a row that does not exist', { detail: name })
    return received()
  }

  function fail(cause: 'store' | 'evidence' | 'host', error: unknown): Response {
    context.telemetry.count('reconcile.failed', { detail: `${name}: ${cause}` })
    context.telemetry.report('webhook processing failed; the sender is expected to retry', { detail: name, error })
    return cause === 'store' ? storeDown() : failed()
  }

  const handler: WebhookHandler = async request => {
    if (request.method !== 'POST') return notPost()
    try {
      return await receive(request)
    } catch (error) {
      const isStore = isLatchkeyError(error, 'store-unavailable') && error.cause !== undefined
      return fail(isStore ? 'store' : 'evidence', error)
    }
  }
  hosts.set(handler, {
    refuse: why => (why === 'method' ? notPost() : refuse(why)),
    fail: error => fail('host', error),
  })
  return handler
}

/** Stops at the limit; the server discards the rest. */
async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Uint8Array | 'too-large'> {
  if (body === null) return new Uint8Array()
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks)
    bytes += value.byteLength
    if (bytes > bytesMax) {
      await reader.cancel()
      return 'too-large'
    }
    chunks.push(value)
  }
}
