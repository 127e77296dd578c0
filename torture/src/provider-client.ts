/** How the shop asks its provider, and what it makes of the answer. */
import { outcomeUnknown } from 'latchkey'

export type ChargeAnswer = { readonly kind: 'charged'; readonly id: string } | { readonly kind: 'declined' }

export interface ChargeRequest {
  readonly url: string
  readonly idempotencyKey: string
  readonly account: string
  readonly amount: number
  /** The client's key: the checker counts charges by it. */
  readonly reference: string
  readonly signal: AbortSignal
}

/** A request that fails is left to Latchkey to judge; a declined card is an answer. */
export async function charge({ url, idempotencyKey, signal, ...asked }: ChargeRequest): Promise<ChargeAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify(asked),
    signal,
  })
  if (response.status === 402) return { kind: 'declined' }
  if (response.status !== 201) throw outcomeUnknown(new Error(`the provider answered ${response.status}`))
  const { id } = (await response.json()) as { id: string }
  return { kind: 'charged', id }
}
