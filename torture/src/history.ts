/** Histories: one file of JSON lines per process. A line is in the file before the next statement runs, so a kill loses none. */
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Kind = 'orders' | 'payments' | 'transfers' | 'payouts'

/** What a client asked, and what it heard. `ok`: a final answer. `fail`: refused for good. `info`: nobody knows yet. */
export interface ClientEvent {
  readonly type: 'invoke' | 'ok' | 'fail' | 'info'
  readonly key: string
  readonly kind: Kind
  readonly account: string
  /** Deliberately another body under a key that is in use. */
  readonly misuse?: boolean
  /** Asked again after all faults had stopped. */
  readonly final?: boolean
  readonly status?: number
  /** Of a problem that Latchkey made. */
  readonly code?: string
  readonly body?: string
  readonly replayed?: boolean
  /** `Idempotency-Stored: false`: the answer is real, and a retry may not get it. */
  readonly unstored?: boolean
  readonly error?: string
}

/** What an application process noticed: a count of Latchkey's telemetry, or something its own code saw. */
export interface AppEvent {
  readonly type: 'started' | 'metric' | 'report' | 'resumed-midway' | 'fault-point' | 'poisoned'
  readonly name?: string
  readonly operation?: string
  readonly identity?: string
  readonly detail?: string
  readonly key?: string
}

export interface NemesisEvent {
  readonly type: 'fault'
  readonly kind: string
  readonly app?: number
  readonly detail?: string
}

/** One arrival of a receipt at its consumer. */
export interface ReceiptEvent {
  readonly type: 'receipt'
  readonly dedupId: string
  readonly account: string
  readonly seq: number
  readonly key: string
  /** What the consumer answered; anything but `accepted` has to come again. */
  readonly answered: 'accepted' | 'failed' | 'lost'
}

export interface History<Event> {
  write(event: Event): void
}

export function openHistory<Event>(directory: string, name: string): History<Event> {
  const path = join(directory, `${name}.jsonl`)
  return { write: event => appendFileSync(path, `${JSON.stringify({ at: Date.now(), ...event })}\n`) }
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
