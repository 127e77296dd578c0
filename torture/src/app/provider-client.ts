/** The shop's client of its provider. Every call is recorded before it is made. */
import { outcomeUnknown } from 'latchkey'
import type { Charge } from '../../../examples/payments/src/charge.ts'
import type { AppEvent, History } from '../history.ts'
import { referenceOf } from './shop.ts'

export type ChargeAnswer = { readonly kind: 'charged'; readonly id: string } | { readonly kind: 'declined' }

export interface ChargeRequest {
  /** The client's: the checker counts charges by it. */
  readonly key: string
  /** The row's. */
  readonly id: string
  readonly downstreamKey: string
  /** False: the downstream key is only information, and two calls charge twice. */
  readonly dedup: boolean
  readonly account: string
  readonly amount: number
  readonly signal: AbortSignal
}

export interface ProviderClient {
  charge(asked: ChargeRequest): Promise<ChargeAnswer>
  find(downstreamKey: string, signal: AbortSignal): Promise<Charge | undefined>
  all(signal: AbortSignal): Promise<readonly Charge[]>
}

/** The request never left this machine. Determined here, because the checker must not rely on Latchkey. */
const beforeSending = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT', 'EADDRNOTAVAIL'])

export function providerClient(url: string, history: History<AppEvent>): ProviderClient {
  return {
    async charge(asked) {
      const { key, downstreamKey: name } = asked
      const ended = (detail: string) => history.write({ type: 'charge-ended', key, name, detail })
      history.write({ type: 'asked', key, name })
      try {
        const answer = await post(url, asked)
        ended(answer.kind)
        return answer
      } catch (error) {
        ended(beforeSending.has(codeOf(error)) ? 'never-left' : 'ambiguous')
        throw error
      }
    },
    async find(downstreamKey, signal) {
      const [found] = await get(`${url}?key=${encodeURIComponent(downstreamKey)}`, signal)
      return found
    },
    all: signal => get(url, signal),
  }
}

/** A failed request is left to Latchkey to classify; a declined card is an answer. */
async function post(url: string, { signal, dedup, ...asked }: ChargeRequest): Promise<ChargeAnswer> {
  const { downstreamKey, account, amount } = asked
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(dedup ? { 'idempotency-key': downstreamKey } : {}) },
    body: JSON.stringify({ key: downstreamKey, account, amount, reference: referenceOf(asked) }),
    signal,
  })
  if (response.status === 402) return { kind: 'declined' }
  if (response.status !== 201) throw outcomeUnknown(new Error(`the provider answered ${response.status}`))
  const { id } = (await response.json()) as Charge // what the provider sends with this status
  return { kind: 'charged', id }
}

async function get(url: string, signal: AbortSignal): Promise<readonly Charge[]> {
  const response = await fetch(url, { signal })
  if (!response.ok) throw new Error(`the provider answered ${response.status}`)
  return (await response.json()) as readonly Charge[] // what the provider sends with this status
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : undefined
  return typeof cause === 'object' ? String(Reflect.get(cause, 'code')) : ''
}
