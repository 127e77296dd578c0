/**
 * A load generator on raw sockets: a full HTTP client costs more than the server it measures. Each connection sends one
 * request, waits for the whole answer, and sends the next, at once or when it is due. Loopback only, bounded in time; it stops
 * sending at the deadline and waits for what is under way, so that every acknowledged key is known.
 */
import { connect, type Socket } from 'node:net'
import { quantile } from '../statistics.ts'
import { statusOfWhole } from './answer.ts'
import { type Keys, requestWriter } from './request.ts'

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  readonly keys: Keys
  readonly tenant?: string
  /** Of each connection, at most. Default: as many as are answered. */
  readonly perSecond?: number
  /** Stops after this many requests. Default: the time decides. */
  readonly requestsMax?: number
}

export interface LoadResult {
  /** Only answers of 2xx count: refusing is cheap. */
  readonly requestsPerSecond: number
  readonly acknowledged: number
  /** Answers that were not 2xx, by status. */
  readonly refused: Readonly<Record<string, number>>
  readonly averageMs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

export function refusalsOf({ refused }: Pick<LoadResult, 'refused'>): number {
  return Object.values(refused).reduce((sum, count) => sum + count, 0)
}

/** An answer that takes longer is a hung server; the run fails instead of waiting for ever. */
const answerLimitMs = 30_000

interface Tally {
  readonly latenciesMs: number[]
  readonly refused: Record<string, number>
}

interface Course {
  next(): string | undefined
  /** From one request to the next; 0: at once. */
  readonly intervalMs: number
  readonly tally: Tally
}

export async function runLoad(load: Load): Promise<LoadResult> {
  const { port, connections, seconds, keys, tenant, perSecond = Infinity, requestsMax = Infinity } = load
  const tally: Tally = { latenciesMs: [], refused: {} }
  const request = requestWriter(keys, tenant)
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  let sent = 0
  const startedAt = performance.now()
  const until = startedAt + seconds * 1_000
  const next = () => (performance.now() < until && sent < requestsMax ? request(sent++) : undefined)
  const course = { next, intervalMs: 1_000 / perSecond, tally }
  await Promise.all(sockets.map(socket => converse(socket, course)))
  const spentSeconds = (performance.now() - startedAt) / 1_000
  const sorted = Float64Array.from(tally.latenciesMs).sort()
  const bad = refusalsOf(tally)
  return {
    requestsPerSecond: (sorted.length - bad) / spentSeconds,
    acknowledged: sorted.length - bad,
    refused: tally.refused,
    averageMs: sorted.reduce((sum, latency) => sum + latency, 0) / sorted.length,
    p50Ms: quantile(sorted, 0.5),
    p95Ms: quantile(sorted, 0.95),
    p99Ms: quantile(sorted, 0.99),
  }
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** One connection's requests, one after the other, until there is no next one. */
function converse(socket: Socket, { next, intervalMs, tally }: Course): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentAt = 0
    let dueAt = performance.now()
    let timer: NodeJS.Timeout | undefined
    let part: Buffer | undefined
    const end = (error?: Error) => {
      clearInterval(watch)
      clearTimeout(timer)
      socket.removeAllListeners('close').destroy()
      if (error === undefined) resolve()
      else reject(error)
    }
    const watch = setInterval(() => {
      if (performance.now() - sentAt > answerLimitMs) end(new Error(`no answer within ${answerLimitMs} ms`))
    }, 1_000)
    const send = (at: number) => {
      const text = next()
      if (text === undefined) return end()
      sentAt = at
      dueAt += intervalMs
      socket.write(text, 'latin1')
    }
    const sendNext = () => {
      const now = performance.now()
      if (intervalMs === 0) return send(now)
      // One that was due while the connection waited for an answer has waited since then.
      if (dueAt <= now) return send(dueAt)
      timer = setTimeout(() => send(performance.now()), dueAt - now)
    }
    socket.on('close', () => end(new Error('the server closed the connection')))
    socket.on('data', (chunk: Buffer) => {
      const received: Buffer = part === undefined ? chunk : Buffer.concat([part, chunk])
      const status = statusOfWhole(received)
      part = status === undefined ? received : undefined
      if (status === undefined) return
      tally.latenciesMs.push(performance.now() - sentAt)
      if (status < 200 || status > 299) tally.refused[status] = (tally.refused[status] ?? 0) + 1
      sendNext()
    })
    sendNext()
  })
}
