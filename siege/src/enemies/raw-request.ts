/** A request written straight to the socket, because a client library would refuse to send it. */
import { connect, type Socket } from 'node:net'
import type { Target } from './enemy.ts'

export function openSocket({ url, signal }: Target): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  const destroy = () => socket.destroy()
  signal.addEventListener('abort', destroy)
  socket.on('close', () => signal.removeEventListener('abort', destroy))
  return socket
}

/** Header fields are sent as latin1, whatever they contain. */
export function rawRequest(path: string, fields: readonly string[], body = '{}'): Buffer {
  const head = [`POST ${path} HTTP/1.1`, 'Host: siege', 'Content-Type: application/json', ...fields]
  return Buffer.from(`${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`, 'latin1')
}

export function statusOf(chunk: Buffer): string {
  return /^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1', 0, 20))?.[1] ?? 'garbage'
}
