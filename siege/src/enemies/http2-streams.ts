/** One key, used on thousands of HTTP/2 streams, which cost the client almost nothing. */
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Attack, Target } from './enemy.ts'

const sessions = 8
const streamsEach = 500

export const http2Streams: Attack = async target => {
  const { random, name } = target
  const headers = {
    ':method': 'POST',
    ':path': random.pick(['/hits', '/transfers']),
    'content-type': 'application/json',
    'idempotency-key': `streamed-${random.between(1, 1e9)}`,
    'x-account': name,
    'x-work-ms': '500',
  }
  await Promise.all(Array.from({ length: sessions }, () => openSession(target, headers)))
}

async function openSession({ http2Url, signal, heard }: Target, headers: Record<string, string>): Promise<void> {
  const session = connect(http2Url)
  const broken = (error: Error) => heard(String(Reflect.get(error, 'code') ?? error.name))
  session.on('error', broken)
  const destroy = () => session.destroy()
  signal.addEventListener('abort', destroy)
  await Promise.all(Array.from({ length: streamsEach }, () => openStream(session, headers, heard)))
  signal.removeEventListener('abort', destroy)
  session.close()
}

function openStream(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  heard: Target['heard'],
): Promise<void> {
  return new Promise(resolve => {
    if (session.destroyed) return resolve()
    const stream = session.request(headers)
    stream.on('response', ({ ':status': status }) => heard(status ?? 0))
    stream.on('error', error => heard(String(Reflect.get(error, 'code') ?? error.name)))
    stream.on('close', () => resolve())
    stream.resume()
    stream.end('{}')
  })
}
