/** The arguments of an enemy, and the request that most of them send. */
import { type Agent, request } from 'node:http'
import type { Random } from '../../../torture/src/random.ts'
import type { Route, StoreKind } from '../app/operations.ts'

export interface Target {
  readonly url: string
  readonly http2Url: string
  readonly store: StoreKind
  /** Of the server that holds the keys. */
  readonly keysUrl: string
  /** Unique to this enemy in this run: no two share a key or a tenant. */
  readonly name: string
  readonly random: Random
  /** Aborted when the attack has taken long enough. */
  readonly signal: AbortSignal
  /** Records a status, or the error that occurred instead. */
  heard(what: string | number): void
  /** Records an answer that belonged to another tenant. */
  untrue(detail: string): void
}

/** One attack, bounded in number, which ends when the signal is aborted. */
export type Attack = (target: Target) => Promise<void>

export interface Sent {
  readonly route: Route
  readonly key: string
  readonly account: string
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly agent?: Agent
}

export interface Reply {
  readonly status: number
  readonly text: string
}

/** Undefined: no answer. Never rejects. */
export function post({ url, signal, heard }: Target, sent: Sent): Promise<Reply | undefined> {
  const { route, key, account, body = '{}', headers = {}, agent } = sent
  return new Promise(resolve => {
    const outgoing = request(`${url}/${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key, 'x-account': account, ...headers },
      signal,
      ...(agent === undefined ? {} : { agent }),
    })
    const fail = (error: Error) => {
      heard(String(Reflect.get(error, 'code') ?? error.name))
      resolve(undefined)
    }
    outgoing.on('error', fail)
    outgoing.on('response', incoming => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.on('error', fail)
      incoming.on('end', () => {
        heard(incoming.statusCode ?? 0)
        resolve({ status: incoming.statusCode ?? 0, text })
      })
    })
    outgoing.end(body)
  })
}

/** Calls `work` for each number below `count`, `atOnce` at a time, until the signal. */
export async function inParallel(
  { count, atOnce, signal }: { count: number; atOnce: number; signal: AbortSignal },
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < count && !signal.aborted) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(count, atOnce) }, lane))
}
