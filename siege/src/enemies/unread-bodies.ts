/** A body of 400 MB for a handler that never reads it, sent as fast as the application accepts it. */
import { request } from 'node:http'
import type { Attack } from './enemy.ts'

const bodyBytes = 400 * 2 ** 20
const chunk = Buffer.alloc(2 ** 16, 'x')

export const unreadBodies: Attack = target =>
  new Promise(resolve => {
    const { url, random, name, signal, heard } = target
    const outgoing = request(`${url}/uploads`, {
      method: 'POST',
      signal,
      headers: {
        'content-type': 'application/octet-stream',
        'idempotency-key': `upload-${random.between(1, 1e9)}`,
        'x-account': name,
      },
    })
    // Refused before its end, which is what a small limit does.
    outgoing.on('error', error => heard(String(Reflect.get(error, 'code') ?? error.name)))
    outgoing.on('response', incoming => {
      heard(incoming.statusCode ?? 0)
      incoming.resume().on('error', () => {})
    })
    outgoing.on('close', () => resolve())
    pour(outgoing)
  })

function pour(outgoing: ReturnType<typeof request>): void {
  let left = bodyBytes
  const more = () => {
    while (left > 0 && !outgoing.destroyed && !outgoing.errored) {
      left -= chunk.length
      if (!outgoing.write(chunk)) return void outgoing.once('drain', more)
    }
    if (left <= 0) outgoing.end()
  }
  more()
}
