/** Key fields and scopes that no client library would send. */
import { type Attack, inParallel, type Target } from './enemy.ts'
import { openSocket, rawRequest, statusOf } from './raw-request.ts'

const atOnce = 20

export const hostileHeaders: Attack = async target => {
  const cases = makeCases(target)
  await inParallel({ count: cases.length, atOnce, signal: target.signal }, index => send(target, cases[index] ?? []))
}

/** Below the server's own limit of 16 KiB for all fields. */
const longField = 12_000

function makeCases({ name, random }: Target): readonly (readonly string[])[] {
  const account = `X-Account: ${name}`
  const keys = [
    '',
    ' ',
    '"',
    '"unclosed',
    'a, b',
    '"a"; p=1',
    '\xff\xfe',
    'k\x01k',
    '\\',
    'k'.repeat(255),
    'k'.repeat(longField),
    '"'.repeat(300),
    '?1',
    ':AA==:',
    '(a b)',
    '%00',
    '../../etc/passwd',
    "'; drop table latchkey.keys; --",
  ]
  const own = `Idempotency-Key: field-${random.between(1, 1e9)}`
  const accounts = ['', ' ', '\xff', 's'.repeat(longField), 'a\x01', 'a,b', '__proto__']
  return [
    ...keys.map(key => [account, `Idempotency-Key: ${key}`]),
    ...accounts.map(scope => [own, `X-Account: ${scope}`]),
    [account, 'Idempotency-Key: "a', 'Idempotency-Key: b"'],
    [account, own, own],
    [account, account, own],
    [account, ...Array.from({ length: 500 }, (_, index) => `X-${index}: 1`), own],
  ]
}

function send(target: Target, fields: readonly string[]): Promise<void> {
  return new Promise(resolve => {
    const socket = openSocket(target)
    socket.on('error', error => target.heard(String(Reflect.get(error, 'code') ?? error.name)))
    socket.once('data', chunk => {
      target.heard(statusOf(chunk))
      socket.end()
    })
    socket.on('close', () => resolve())
    socket.write(rawRequest('/transfers', fields))
  })
}
