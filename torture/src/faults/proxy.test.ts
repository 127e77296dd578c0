import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { commit as lastWord } from '../keys/postgres-keys.ts'
import { openProxy, type Proxy } from './proxy.ts'

let server: Server
let proxy: Proxy
let received: string[] = []

beforeAll(async () => {
  server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', bytes => {
      received.push(bytes.toString('latin1'))
      socket.write(`answer to ${bytes.toString('latin1')}`)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  proxy = await openProxy(`postgres://user@127.0.0.1:${(server.address() as AddressInfo).port}/db`, lastWord)
})
afterEach(() => {
  proxy.heal()
  received = []
})
afterAll(async () => {
  await proxy.close()
  server.close()
})

const commit = 'Q\0\0\0\x0bCOMMIT\0'

async function open(): Promise<Socket> {
  const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

async function answerTo(socket: Socket, text: string): Promise<string> {
  socket.write(text, 'latin1')
  const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed'])])
  return String(answer)
}

/** What is said into the dark has no answer; one that came would be here within this time. */
const silenceMs = 150
async function isSilent(socket: Socket, text: string): Promise<boolean> {
  const silence = new Promise<string>(resolve => setTimeout(() => resolve('silence'), silenceMs))
  return (await Promise.race([answerTo(socket, text), silence])) === 'silence'
}

describe('a proxy', () => {
  it('passes both ways, and is cut', async () => {
    const socket = await open()
    expect(await answerTo(socket, 'hello')).toBe('answer to hello')
    expect(proxy.cut()).toBeGreaterThan(0)
    await once(socket, 'close')
  })

  it('goes dark: nothing arrives and nobody is told, until it is healed and the connection ends', async () => {
    const socket = await open()
    proxy.goDark('both')
    expect(await isSilent(socket, 'hello')).toBe(true)
    expect(received).toEqual([])
    proxy.heal()
    await once(socket, 'close')
    expect(await answerTo(await open(), 'again')).toBe('answer to again')
  })

  it('loses replies only: the server hears, the client does not', async () => {
    const socket = await open()
    proxy.goDark('replies')
    expect(await isSilent(socket, 'hello')).toBe(true)
    expect(received).toEqual(['hello'])
  })

  it.each(['cut', 'silence'] as const)('swallows the answer to a COMMIT that arrived: %s', async then => {
    const socket = await open()
    let swallowed = 0
    proxy.swallowReply(then, () => (swallowed += 1))
    expect(await answerTo(socket, 'BEGIN')).toBe('answer to BEGIN')
    if (then === 'cut') expect(await answerTo(socket, commit)).toBe('closed')
    else expect(await isSilent(socket, commit)).toBe(true)
    expect(received).toEqual(['BEGIN', commit])
    expect(swallowed).toBe(1)
  })

  it('keeps the order of bytes when it stops being slow', async () => {
    const socket = await open()
    proxy.slowDown(100)
    socket.write('first ')
    await new Promise(resolve => setTimeout(resolve, 20))
    proxy.heal()
    socket.write('second ')
    const endMs = performance.now() + 10_000
    while (received.join('') !== 'first second ' && performance.now() < endMs)
      await new Promise(resolve => setTimeout(resolve, 20))
    expect(received.join('')).toBe('first second ')
  })
})
