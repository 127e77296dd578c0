/**
 * A load generator on raw sockets: a full HTTP client costs more than the server it measures. Each connection sends one
 * request, waits for the whole answer, and sends the next. Loopback only, bounded in time; it stops sending at the deadline
 * and waits for what is under way, so that every acknowledged key is known.
 */
import { connect, type Socket } from 'node:net'

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** The key of the n-th request. */
  readonly key: (n: number) => string
  /** Stops after this many requests. Default: the time decides. */
  readonly requestsMax?: number
}

export interface LoadResult {
  readonly requestsPerSecond: number
  readonly acknowledged: number
  /** Answers that were not 2xx, by status. */
  readonly refused: Readonly<Record<string, number>>
  readonly p50Ms: number
  readonly p99Ms: number
}

const body = JSON.stringify({ sku: 'tea', quantity: 3, note: 'x'.repeat(120) })
/** An answer that takes longer is a hung server; the run fails instead of waiting for ever. */
const answerLimitMs = 30_000

export async function runLoad({ port, connections, seconds, key, requestsMax = Infinity }: Load): Promise<LoadResult> {
  const latenciesMs: number[] = []
  const refused: Record<string, number> = {}
  let sent = 0
  const startedAt = performance.now()
  const until = startedAt + seconds * 1_000

  async function client(): Promise<void> {
    const socket = await open(port)
    while (performance.now() < until && sent < requestsMax) {
      const sentAt = performance.now()
      const status = await ask(socket, requestText(key(sent++)))
      latenciesMs.push(performance.now() - sentAt)
      if (status < 200 || status > 299) refused[status] = (refused[status] ?? 0) + 1
    }
    socket.destroy()
  }

  await Promise.all(Array.from({ length: connections }, client))
  const spentSeconds = (performance.now() - startedAt) / 1_000
  latenciesMs.sort((a, b) => a - b)
  const bad = Object.values(refused).reduce((sum, count) => sum + count, 0)
  return {
    requestsPerSecond: latenciesMs.length / spentSeconds,
    acknowledged: latenciesMs.length - bad,
    refused,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
  }
}

function requestText(key: string): string {
  return `POST /orders HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\nidempotency-key: ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** The answers here are small and carry a Content-Length, so a whole one is its head plus that many bytes. */
function ask(socket: Socket, text: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = ''
    const limit = setTimeout(() => finish(new Error('the server did not answer')), answerLimitMs)
    const onData = (chunk: Buffer) => {
      received += chunk.toString('latin1')
      const headEnd = received.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const length = Number(/content-length: (\d+)/i.exec(received.slice(0, headEnd))?.[1] ?? 0)
      if (received.length >= headEnd + 4 + length) finish()
    }
    const onClose = () => finish(new Error('the server closed the connection'))
    const finish = (error?: Error) => {
      clearTimeout(limit)
      socket.off('data', onData).off('close', onClose)
      if (error === undefined) resolve(Number(received.slice(9, 12)))
      else reject(error)
    }
    socket.on('data', onData).on('close', onClose)
    socket.write(text)
  })
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0
}
