/** The shop's clients: what they request, and what they saw. */
import { randomUUID } from 'node:crypto'
import { tokens } from '../api.ts'

export type Path = '/payments' | '/payouts' | '/transfers'

/** Something that must happen once. No two in a story share account and amount, so a charge identifies its wish. */
export interface Wish {
  readonly path: Path
  readonly account: string
  readonly key: string
  readonly amount: number
  /** False: it must be refused, and nothing may happen. */
  readonly rightful: boolean
}

export interface Answer {
  readonly wish: Wish
  /** Undefined: there was no answer, and `text` says why. */
  readonly status: number | undefined
  readonly text: string
  readonly replayed: boolean
}

export interface Client {
  send(wish: Wish, signal?: AbortSignal): Promise<Answer>
  read<T>(account: string, path: string): Promise<T>
  post(account: string, path: string, body: unknown): Promise<unknown>
}

const answerWithinMs = 25_000
const tokenOf = (account: string) => Object.entries(tokens).find(([, name]) => name === account)?.[0] ?? ''

export function newKey(): string {
  return randomUUID()
}

export function client(url: () => string): Client {
  const headers = (account: string) => ({
    authorization: `Bearer ${tokenOf(account)}`,
    'content-type': 'application/json',
  })
  const within = (signal?: AbortSignal) =>
    AbortSignal.any([AbortSignal.timeout(answerWithinMs), ...(signal === undefined ? [] : [signal])])
  return {
    async send(wish, signal) {
      const { account, path, key, amount } = wish
      try {
        const response = await fetch(url() + path, {
          method: 'POST',
          headers: { ...headers(account), 'idempotency-key': key },
          body: JSON.stringify({ amount }),
          signal: within(signal),
        })
        const replayed = response.headers.get('idempotent-replayed') === 'true'
        return { wish, status: response.status, text: await response.text(), replayed }
      } catch {
        const text = signal?.aborted === true ? 'disconnected before the answer arrived' : 'the connection broke'
        return { wish, status: undefined, text, replayed: false }
      }
    },
    async read<T>(account: string, path: string) {
      const response = await fetch(url() + path, { headers: headers(account), signal: within() })
      if (!response.ok) throw new Error(`GET ${path} was answered with ${response.status}: ${await response.text()}`)
      // What api.ts and operator-routes.ts send at this address.
      return (await response.json()) as T
    },
    async post(account, path, body) {
      const response = await fetch(url() + path, {
        method: 'POST',
        headers: headers(account),
        body: JSON.stringify(body),
        signal: within(),
      })
      return response.json()
    },
  }
}
