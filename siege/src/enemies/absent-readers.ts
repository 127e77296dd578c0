/** Clients that never read the response, and clients that never finish the request. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Attack, type Target } from './enemy.ts'
import { openSocket, rawRequest, statusOf } from './raw-request.ts'

const readers = 300
const downloads = 20
const writers = 100
const holdMs = 3_000
const dribbles = 10

export const absentReaders: Attack = async target => {
  const from = target.random.between(1, 1e9)
  await Promise.all([
    ...Array.from({ length: readers }, (_, index) => neverReads(target, `unread-${from}-${index}`)),
    ...Array.from({ length: downloads }, (_, index) => neverDownloads(target, `report-${from}-${index}`)),
    ...Array.from({ length: writers }, (_, index) => neverFinishes(target, `slow-${from}-${index}`)),
    // One client reads, to show that the application answered.
    reads(target, `read-${from}`),
  ])
}

const fieldsOf = ({ name }: Target, key: string) => [`X-Account: ${name}`, `Idempotency-Key: ${key}`]

/** Twenty requests on one connection, whose answers are not read. */
async function neverReads(target: Target, key: string): Promise<void> {
  const socket = openSocket(target)
  socket.on('error', () => {})
  socket.pause()
  for (let index = 0; index < 20; index += 1) socket.write(rawRequest('/hits', fieldsOf(target, `${key}-${index}`)))
  await hold(target)
  socket.destroy()
}

/** One answer that is far larger than what may be held of it. */
async function neverDownloads(target: Target, key: string): Promise<void> {
  const socket = openSocket(target)
  socket.on('error', () => {})
  socket.pause()
  socket.write(rawRequest('/reports', fieldsOf(target, key)))
  await hold(target)
  socket.destroy()
}

async function neverFinishes(target: Target, key: string): Promise<void> {
  const socket = openSocket(target)
  socket.on('error', () => {})
  const whole = rawRequest('/transfers', fieldsOf(target, key), ' '.repeat(1_000))
  socket.write(whole.subarray(0, -dribbles - 1))
  for (let sent = 0; sent < dribbles && !target.signal.aborted; sent += 1) {
    socket.write(' ')
    await delay(holdMs / dribbles)
  }
  socket.destroy()
}

function reads(target: Target, key: string): Promise<void> {
  return new Promise(resolve => {
    const socket = openSocket(target)
    socket.on('error', () => {})
    socket.once('data', chunk => {
      target.heard(statusOf(chunk))
      socket.end()
    })
    socket.on('close', () => resolve())
    socket.write(rawRequest('/hits', fieldsOf(target, key)))
  })
}

async function hold({ signal }: Target): Promise<void> {
  await delay(holdMs, undefined, { signal }).catch(() => {})
}
