/** The client of the payment provider, wherever it runs. */
import { classifyNetworkFailure, notExecuted, outcomeUnknown } from 'latchkey'
import type { AskedFor, Charge, Declined, Fault, ProviderState, WebhookTarget } from './charge.ts'

export interface ProviderAddress {
  readonly url: string
  /** Switches its faults, its idempotency and its webhooks; see provider.ts. */
  readonly controlUrl: string
}

export interface AskedCharge extends Omit<Charge, 'id'> {
  /** False: the key is sent only for information, and two calls charge twice. Default true. */
  readonly dedup?: boolean
}

export interface ProviderClient {
  charge(asked: AskedCharge, signal: AbortSignal): Promise<Charge | Declined>
  charges(): Promise<readonly Charge[]>
  /** The charges under a downstream key. */
  find(key: string, signal: AbortSignal): Promise<readonly Charge[]>
  /** null: no fault. */
  setFault(fault: Fault | null): Promise<ProviderState>
  setIdempotency(on: boolean): Promise<ProviderState>
  /** null: no webhooks. */
  setWebhook(target: WebhookTarget | null): Promise<ProviderState>
  setBooks(open: boolean): Promise<ProviderState>
  state(): Promise<ProviderState>
  /** Its ledger, even while it is down or its books are closed. */
  ledger(): Promise<readonly Charge[]>
  /** All requests for charges, whatever their result. */
  asked(): Promise<readonly AskedFor[]>
}

/** A slower answer counts as none; the lease is longer. */
const chargeTimeoutMs = 10_000

export function providerClient({ url, controlUrl }: ProviderAddress): ProviderClient {
  return {
    async charge({ dedup = true, ...asked }, signal) {
      const response = await askOnce(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(dedup ? { 'idempotency-key': asked.key } : {}) },
        body: JSON.stringify(asked),
        signal: AbortSignal.any([signal, AbortSignal.timeout(chargeTimeoutMs)]),
      })
      if (response.status === 201) return (await response.json()) as Charge
      if (response.status === 402) return { declined: true }
      throw outcomeUnknown(new Error(`the provider answered ${response.status}`))
    },
    charges: () => get<readonly Charge[]>(url),
    find: (key, signal) => get<readonly Charge[]>(`${url}?key=${encodeURIComponent(key)}`, signal),
    setFault: fault => put(`${controlUrl}/fault`, fault),
    setIdempotency: on => put(`${controlUrl}/idempotency`, on),
    setWebhook: target => put(`${controlUrl}/webhook`, target),
    setBooks: open => put(`${controlUrl}/books`, open),
    state: () => get<ProviderState>(controlUrl),
    ledger: () => get<readonly Charge[]>(`${controlUrl}/charges`),
    asked: () => get<readonly AskedFor[]>(`${controlUrl}/asked`),
  }
}

async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(url, signal ? { signal } : {})
  if (!response.ok) throw new Error(`the provider answered ${response.status}`)
  // What provider.ts sends at this address.
  return (await response.json()) as T
}

/** A request that was never sent cannot have charged; any other failure may have. */
async function askOnce(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, request)
  } catch (error) {
    throw classifyNetworkFailure(error) === 'never-left' ? notExecuted(error) : outcomeUnknown(error)
  }
}

async function put(url: string, value: unknown): Promise<ProviderState> {
  const response = await fetch(url, { method: 'PUT', body: JSON.stringify(value) })
  if (!response.ok) throw new Error(`the provider refused ${JSON.stringify(value)}: ${await response.text()}`)
  return (await response.json()) as ProviderState
}
