/** Histories: one file of JSON lines per process. A line is written before the next statement runs, so a kill loses none. */
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** `refunds` are deferred: a client gets a status resource, and polls it until there is an outcome. */
export type Kind = 'orders' | 'payments' | 'transfers' | 'payouts' | 'refunds'

/** True time, even in a process whose Date.now() is wrong. */
interface Timed {
  readonly at?: number
}

/** What a client sent, and what it got. `ok`: a final answer. `fail`: refused for good. `info`: not final. */
export interface ClientEvent extends Timed {
  readonly type: 'invoke' | 'ok' | 'fail' | 'info'
  readonly key: string
  readonly kind: Kind
  readonly account: string
  /** Deliberately another body under a key that is in use. */
  readonly misuse?: boolean
  /** Sent again after all faults had stopped. */
  readonly final?: boolean
  /** A poll of the status resource. An outcome found there is recorded as status and body of `ok`. */
  readonly looked?: boolean
  /** A poll of another account's operation. */
  readonly foreign?: boolean
  readonly status?: number
  /** Of a problem that Latchkey made. */
  readonly code?: string
  readonly body?: string
  readonly replayed?: boolean
  /** `Idempotency-Stored: false`: the answer is real, and a retry may not get it. */
  readonly unstored?: boolean
  readonly error?: string
}

/**
 * What an application process noticed: a count of Latchkey's telemetry, or something its own code saw. `asked` and `charge-ended`: before and
 * after each call to the provider, under the downstream key in `name`; `detail` of the second: charged, declined, never-left or ambiguous.
 * `cache-hits`: how many requests the cache has answered since the last such event, in `detail`.
 */
export interface AppEvent extends Timed {
  readonly type:
    | 'started'
    | 'metric'
    | 'report'
    | 'resumed-midway'
    | 'fault-point'
    | 'poisoned'
    | 'asked'
    | 'charge-ended'
    | 'cache-hits'
  readonly name?: string
  readonly operation?: string
  readonly identity?: string
  readonly detail?: string
  readonly key?: string
}

export interface NemesisEvent extends Timed {
  readonly type: 'fault'
  readonly kind: string
  readonly app?: number
  readonly detail?: string
}

/** One delivery of a webhook to an application process. Without a status: no answer. */
export interface WebhookEvent extends Timed {
  readonly type: 'webhook'
  /**
   * `genuine`: signed by the provider, sent until it is accepted. `again`: a later one of the same message. `replayed`: the bytes of one that was
   * taken. `forged`: signed by somebody else, or changed. `stale`: signed by the provider, long ago.
   */
  readonly how: 'genuine' | 'again' | 'replayed' | 'forged' | 'stale'
  readonly key: string
  readonly status?: number
  readonly detail?: string
}

/** One arrival of a receipt at its consumer. */
export interface ReceiptEvent extends Timed {
  readonly type: 'receipt'
  readonly dedupId: string
  readonly account: string
  readonly seq: number
  readonly key: string
  /** The consumer's answer; anything but `accepted` must be delivered again. */
  readonly answered: 'accepted' | 'failed' | 'lost'
}

export interface History<Event> {
  write(event: Event): void
}

export function openHistory<Event>(directory: string, name: string): History<Event> {
  const path = join(directory, `${name}.jsonl`)
  const now = () => Math.round(performance.timeOrigin + performance.now())
  return { write: event => appendFileSync(path, `${JSON.stringify({ at: now(), ...event })}\n`) }
}

/** All events of the files whose name begins so. The last line of a killed process may be torn: it is left out. */
export function readHistories<Event>(directory: string, prefix: string): Event[] {
  if (!existsSync(directory)) return []
  const files = readdirSync(directory).filter(name => name.startsWith(prefix) && name.endsWith('.jsonl'))
  return files.flatMap(name => {
    const text = readFileSync(join(directory, name), 'utf8')
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    return whole
      .split('\n')
      .filter(line => line !== '')
      .map((line): Event => JSON.parse(line))
  })
}
