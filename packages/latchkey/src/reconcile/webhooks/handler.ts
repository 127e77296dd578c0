/** A provider's webhooks as evidence: signed, deduplicated, kept, applied. A fetch handler, for every adapter. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { isLatchkeyError, misconfigured, unreachable } from '../../ports/errors.ts'
import { anything, callable } from '../../ports/option-kinds.ts'
import type { FoundVerdict } from '../../ports/reconciliation.ts'
import { within } from '../../engine/store/call.ts'
import { present, type Presented } from '../evidence.ts'
import type { Parts } from '../host.ts'
import { readBounded } from './read-body.ts'
import type { VerifyWebhook, Verified } from './signatures.ts'
import { findSubject, type FoundSubject } from '../subject.ts'
import { checkedVerdict, type Statement } from '../verdict.ts'
import { failed, notPost, received, refused, type RefusedWhy, storeDown, tooLarge } from './answer.ts'

export interface WebhookOptions<Event> {
  /** A stable name for the sender, of at most 64 characters: messages are remembered under it. */
  readonly name: string
  /** `standardWebhooks({ secrets })`, `stripeWebhooks({ secrets })`, or a function of your own. */
  readonly verify: VerifyWebhook
  /**
   * What a genuine event says about which row. Undefined: nothing that concerns a row here. It may read, and must not write: a message comes
   * more than once. A throw is answered with 500, so that the sender tries again.
   */
  readonly evidence: (event: Event) => Statement | undefined | Promise<Statement | undefined>
}

/** For any server that speaks fetch; for Node's own requests, wrap it in `nodeWebhook`. Mount it before body parsers. */
export type WebhookHandler = (request: Request) => Promise<Response>

/** What a server that stands before a handler answers by itself, counted as the handler counts. */
export interface WebhookHost {
  /** `method`: one that fetch does not know. */
  refuse(why: 'malformed' | 'method'): Response
  fail(error: unknown): Response
}

const hosts = new WeakMap<WebhookHandler, WebhookHost>()
/** Of a handler that somebody wrapped: there is nothing to count it with. */
const silentHost: WebhookHost = { refuse: why => (why === 'method' ? notPost() : refused(why)), fail: failed }

export function hostOf(handler: WebhookHandler): WebhookHost {
  return hosts.get(handler) ?? silentHost
}

export const webhookBytesMax = 1_048_576
/** Senders give up after 5 to 30 s, and try again. */
const evidenceMsMax = 10_000

const webhookChecks: ChecksOf<WebhookOptions<unknown>> = { name: anything, verify: callable, evidence: callable }

type Genuine = Extract<Verified, { kind: 'genuine' }>

function checked<Event>(options: WebhookOptions<Event>): WebhookOptions<Event> {
  checkOptions('webhook', options, webhookChecks)
  const { name, verify, evidence } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw misconfigured(
      `webhook: name must be 1 to 64 letters, digits, '.', '_' or '-', and is ${JSON.stringify(name)}`,
    )
  }
  if (verify === undefined) {
    throw misconfigured(`webhook ${name} needs verify: standardWebhooks({ secrets }) or stripeWebhooks({ secrets })`)
  }
  if (evidence === undefined) throw misconfigured(`webhook ${name} needs evidence: a function of the event`)
  return options
}

export function webhookHandler<Event>(parts: Parts, options: WebhookOptions<Event>): WebhookHandler {
  const { name, verify, evidence } = checked(options)

  function refuse(why: RefusedWhy): Response {
    parts.telemetry.count('reconcile.refused', { detail: `${name}: ${why}` })
    return why === 'too-large' ? tooLarge() : refused(why)
  }

  async function take(request: Request): Promise<Response> {
    const body = await readBounded(request.body, webhookBytesMax)
    if (body === 'too-large') return refuse(body)
    const header = (field: string) => request.headers.get(field) ?? undefined
    const verified = await verify({ header, body, nowMs: parts.clock.nowMs() })
    if (verified.kind === 'refused') return refuse(verified.why)
    // What the sender signed is what the caller says that it sends.
    const said = await within(parts.clock, evidenceMsMax, async () => evidence(verified.event as Event))
    if (said === undefined) return received()
    const verdict = checkedStatement(parts, name, said)
    const found = await findSubject(parts, said)
    if (found === undefined) return unknownRow()
    return answer(await presentMessage(parts, { name, verified, found, verdict }))
  }

  /** Told, because it may be about a downstream key that was given up; taken, because no delivery will find more. */
  function unknownRow(): Response {
    parts.telemetry.count('reconcile.refused', { detail: `${name}: no-row` })
    parts.telemetry.report('a webhook speaks of a row that is not here', { detail: name })
    return received()
  }

  function answer(presented: Presented): Response {
    switch (presented.kind) {
      case 'replayed':
        return refuse('replayed')
      case 'no-row':
        return unknownRow()
      case 'settled':
      case 'applied-before':
      case 'too-early':
      case 'not-applicable':
      case 'claim-lost':
        return received()
      default:
        return unreachable(presented)
    }
  }

  function fail(cause: 'store' | 'evidence' | 'host', error: unknown): Response {
    parts.telemetry.count('reconcile.failed', { detail: `${name}: ${cause}` })
    parts.telemetry.report('a webhook could not be taken; its sender tries again', { detail: name, error })
    return cause === 'store' ? storeDown() : failed()
  }

  const handler: WebhookHandler = async request => {
    if (request.method !== 'POST') return notPost()
    try {
      return await take(request)
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

/** The version of an outcome is the operation's, and is known when its row is found. */
function checkedStatement(parts: Parts, name: string, said: Statement): (operation: string) => FoundVerdict {
  const what = `the verdict of the webhook ${name}`
  const check = (outcomeVersion: number) => {
    const verdict = checkedVerdict(what, said?.verdict, outcomeVersion)
    if (verdict !== 'still-unknown') return verdict
    throw misconfigured(`${what} is still-unknown: return undefined where an event tells nothing`)
  }
  check(0)
  return operation => check(parts.keeping(operation).outcomeVersion)
}

interface Taken {
  readonly name: string
  readonly verified: Genuine
  readonly found: FoundSubject
  readonly verdict: (operation: string) => FoundVerdict
}

function presentMessage(parts: Parts, { name, verified, found, verdict }: Taken): Promise<Presented> {
  const { subject, operation } = found
  const { id, signedAtMs } = verified
  return present(parts, {
    subject,
    operation,
    finding: { source: 'webhook', ref: `${name}:${id}`, verdict: verdict(operation), delivery: { signedAtMs } },
    // What it says was true when it was signed.
    ageMs: Math.max(0, parts.clock.nowMs() - signedAtMs),
  })
}
