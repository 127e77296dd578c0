/** A capture and the connection below it. */
import { once } from 'node:events'
import {
  createServer,
  get as httpGet,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer, request as tlsRequest } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { type Capture, type CaptureEnd, captureResponse } from './capture.ts'

type Handler = (req: IncomingMessage, res: ServerResponse) => unknown

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    if (server.listening) await new Promise(resolve => server.close(resolve))
  }
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port // it listens on TCP
}

interface Held {
  readonly capture: Capture
  readonly end: CaptureEnd
  readonly res: ServerResponse
}

/** A server that captures every response, stores it for some time, and releases it. */
function capturing(
  handle: Handler,
  { before, released = () => {} }: { before?: Handler; released?: (held: Held) => void } = {},
): Server {
  return createServer((req, res) => {
    before?.(req, res)
    capture(req, res)
  })

  function capture(req: IncomingMessage, res: ServerResponse): void {
    const capture = captureResponse(res, req)
    void handle(req, res)
    void capture.ended.then(async end => {
      await pause(5)
      capture.release([])
      released({ capture, end, res })
    })
  }
}

/** Everything that comes back for bytes sent by hand, until the server closes the connection. */
async function exchangeRaw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  let received = ''
  socket.on('data', data => (received += String(data)))
  socket.write(text)
  await once(socket, 'close')
  return received
}

const ask = (path: string, ...fields: string[]) => [`GET ${path} HTTP/1.1`, 'Host: x', ...fields, '', ''].join('\r\n')

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of incoming) body += String(chunk)
  return body
}

async function get(
  port: number,
  path = '/',
): Promise<{ status: number | undefined; body: string; headers: IncomingMessage['headers'] }> {
  const [incoming] = (await once(httpGet({ port, path, host: '127.0.0.1', agent: false }), 'response')) as [
    IncomingMessage,
  ] // Node's event
  return { status: incoming.statusCode, body: await bodyOf(incoming), headers: incoming.headers }
}

describe('a captured response on its connection', () => {
  it('takes a write that comes after the release quietly, whoever has kept the method', async () => {
    const results: unknown[] = []
    const errors: unknown[] = []
    const server = capturing(
      (_, res) => {
        const { write } = res
        res.end('tea')
        for (const ms of [0, 6, 30])
          setTimeout(() => results.push(write.call(res, 'late', 'utf8', error => errors.push(error))), ms)
      },
      { released: ({ res }) => void results.push(res.write('right after')) },
    )
    expect((await get(await listen(server))).body).toBe('tea')
    await expect.poll(() => errors.length).toBe(3)
    expect(results).toEqual([false, false, false, false])
  })

  it('gives the handler a socket that reads as the real one', async () => {
    const seen: unknown[] = []
    const server = capturing(
      (req, res) => {
        const { socket } = res
        seen.push(
          socket === req.socket,
          socket?.remoteAddress,
          socket?.remotePort,
          Reflect.get(socket ?? {}, 'server') === server,
        )
        seen.push(socket?.writable, socket?.destroyed, res.connection === socket, typeof socket?.setKeepAlive(true))
        res.setTimeout(1_000)
        res.end('tea')
      },
      { before: (_, res) => void seen.push(res.socket?.remotePort) },
    )
    expect((await get(await listen(server))).body).toBe('tea')
    const port = seen[0]
    expect(seen.slice(1)).toEqual([true, '127.0.0.1', port, true, true, false, true, 'object'])
  })

  it('shows the head as soon as it is complete', async () => {
    const seen: unknown[] = []
    const server = capturing((_, res) => {
      seen.push(Reflect.get(res, '_header'))
      res.writeHead(202, { 'X-A': '1' })
      seen.push(Reflect.get(res, '_header'))
      res.end()
    })
    expect((await get(await listen(server))).status).toBe(202)
    expect(seen).toEqual([null, expect.stringMatching(/^HTTP\/1.1 202 Accepted\r\nX-A: 1\r\n/)])
  })

  it('sends 100, 102 and 103 at once', async () => {
    let proceed = () => {}
    const received103 = new Promise<void>(resolve => (proceed = resolve))
    const server = capturing(async (_, res) => {
      res.writeContinue()
      res.writeProcessing()
      res.writeEarlyHints({ link: '</a.css>; rel=preload' })
      await received103
      res.end('tea')
    })
    const port = await listen(server)
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    let received = ''
    socket.on('data', data => (received += String(data)))
    socket.write(ask('/', 'Connection: close'))
    await expect.poll(() => received.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 102', 'HTTP/1.1 103'])
    proceed()
    await once(socket, 'close')
    expect(received).toMatch(/HTTP\/1.1 200 OK\r\n(.+\r\n)+\r\ntea$/)
  })

  it('sends what a handler pipes from another server, whole and with its length', async () => {
    const upstream = await listen(
      createServer((_, res) => {
        res.writeHead(201, { 'Content-Type': 'text/plain' })
        for (let at = 0; at < 30; at++) res.write('x'.repeat(10_000))
        res.end()
      }),
    )
    const ends: CaptureEnd[] = []
    const server = capturing(
      (_, res) =>
        httpGet({ port: upstream, host: '127.0.0.1' }, incoming => {
          res.writeHead(incoming.statusCode ?? 0, incoming.headers)
          incoming.pipe(res)
        }),
      { released: ({ end }) => void ends.push(end) },
    )
    const { status, body, headers } = await get(await listen(server))
    expect([status, body.length, headers['content-length']]).toEqual([201, 300_000, '300000'])
    expect(ends).toMatchObject([{ kind: 'whole', response: { status: 201 } }])
  })

  it('sends on what was begun before the capture, and does not take it for a whole answer', async () => {
    const ends: CaptureEnd[] = []
    const server = capturing(
      (_, res) => {
        res.write('two ')
        res.end('three')
      },
      { before: (_, res) => res.write('one '), released: ({ end }) => void ends.push(end) },
    )
    expect(await get(await listen(server))).toMatchObject({ status: 200, body: 'one two three' })
    expect(ends).toMatchObject([{ kind: 'unreplayable', status: 200 }])
  })

  it('runs a handler whose response was answered before the capture', async () => {
    const ends: CaptureEnd[] = []
    const server = capturing((_, res) => res.writeHead(201).end('tea'), {
      before: (_, res) => res.writeHead(503).end('too late'),
      released: ({ end }) => void ends.push(end),
    })
    expect(await get(await listen(server))).toMatchObject({ status: 503, body: 'too late' })
    await expect.poll(() => ends).toMatchObject([{ kind: 'whole', response: { status: 201 } }])
  })

  it.each(['finish', 'close'])('emits %s to a handler that waits for it', async event => {
    const seen: string[] = []
    const server = capturing(
      async (_, res) => {
        res.end('tea')
        await once(res, event)
        seen.push('handler')
      },
      { released: () => void seen.push('released') },
    )
    expect((await get(await listen(server))).body).toBe('tea')
    expect(seen).toEqual(['handler', 'released'])
  })

  it('keeps the connection for the next request', async () => {
    const ports: unknown[] = []
    const server = capturing((req, res) => {
      ports.push(req.socket.remotePort)
      res.end(req.url)
    })
    const port = await listen(server)
    const received = await exchangeRaw(port, ask('/1') + ask('/2') + ask('/3', 'Connection: close'))
    expect(received.match(/\r\n\r\n\/\d/g)).toEqual(['\r\n\r\n/1', '\r\n\r\n/2', '\r\n\r\n/3'])
    expect(new Set(ports).size).toBe(1)
  })

  it('answers in the order of the requests, also with 1xx and large answers among them', async () => {
    const server = capturing(async (req, res) => {
      if (req.url === '/1') await pause(40)
      if (req.url === '/2') res.writeEarlyHints({ link: '</a.css>; rel=preload' })
      res.end(req.url === '/2' ? 'x'.repeat(100_000) : req.url)
    })
    const received = await exchangeRaw(await listen(server), ask('/1') + ask('/2') + ask('/3', 'Connection: close'))
    expect(received.match(/HTTP\/1.1 \d+/g)).toEqual(['200', '103', '200', '200'].map(status => `HTTP/1.1 ${status}`))
    expect(received.length).toBeGreaterThan(100_000)
    expect(received).toMatch(/\/3$/)
  })

  it('replaces the answer to a request that was sent behind another one', async () => {
    const server = createServer((req, res) => {
      const capture = captureResponse(res, req)
      if (req.url === '/1') setTimeout(() => res.end('one'), 40)
      else res.setHeader('X-Dropped', '1').end('x'.repeat(50_000))
      const answer = { status: 504, headers: [], body: Buffer.from('two') }
      void capture.ended.then(() => (req.url === '/1' ? capture.release([]) : capture.replace(answer)))
    })
    const received = await exchangeRaw(await listen(server), ask('/1') + ask('/2', 'Connection: close'))
    expect(received).toMatch(/^HTTP\/1.1 200 [^]*\r\n\r\noneHTTP\/1.1 504 [^]*\r\n\r\ntwo$/)
    expect(received).not.toContain('X-Dropped')
  })

  it('works on TLS', async () => {
    const seen: unknown[] = []
    // A secret that both know instead of a certificate.
    const psk = Buffer.alloc(32, 1)
    const server = createTlsServer({ ciphers: 'PSK', pskCallback: () => psk }, (req, res) => {
      const capture = captureResponse(res, req)
      seen.push(Reflect.get(req.socket, 'encrypted'))
      res.end('tea')
      void capture.ended.then(() => capture.release([]))
    })
    const port = await listen(server)
    const shared = {
      ciphers: 'PSK',
      pskCallback: () => ({ psk, identity: 'test' }),
      checkServerIdentity: () => undefined,
    }
    const outgoing = tlsRequest({ port, host: '127.0.0.1', agent: false, ...shared }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage] // Node's event
    expect([await bodyOf(incoming), seen]).toEqual(['tea', [true]])
  })

  it('lets a handler take the connection over for another protocol', async () => {
    const ends: CaptureEnd[] = []
    const server = capturing(
      (_, res) => {
        res.socket?.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
        res.socket?.end('hello')
      },
      { released: ({ end }) => void ends.push(end) },
    )
    const received = await exchangeRaw(await listen(server), ask('/', 'Upgrade: echo'))
    expect(received).toMatch(/^HTTP\/1.1 101 [^]*\r\n\r\nhello$/)
    await expect.poll(() => ends).toMatchObject([{ kind: 'unreplayable' }])
  })

  it('closes the connection at the server timeout, which the handler does not notice', async () => {
    const seen: unknown[] = []
    const ended: CaptureEnd[] = []
    let closed: Promise<unknown> | undefined
    const server = capturing(
      async (_, res) => {
        res.on('close', () => seen.push('close'))
        await closed
        seen.push(res.destroyed, res.socket?.destroyed)
        res.end('tea')
      },
      { released: ({ end }) => void ended.push(end) },
    )
    server.setTimeout(40)
    server.on('connection', (socket: Socket) => {
      closed = once(socket, 'close')
    })
    await expect(get(await listen(server))).rejects.toThrow(/socket hang up|ECONNRESET/)
    await expect.poll(() => ended).toMatchObject([{ kind: 'whole' }])
    expect(seen).toEqual([false, false, 'close'])
  })

  it('emits timeout to a listener of the response', async () => {
    const server = capturing((_, res) => void res.setTimeout(20, () => res.writeHead(503).end('slow')))
    expect(await get(await listen(server))).toMatchObject({ status: 503, body: 'slow' })
  })

  it('sends a large answer to a slow reader whole, and reports the real end only then', async () => {
    const heard: string[] = []
    const server = capturing((_, res) => res.end(Buffer.alloc(8_000_000, 'x')), {
      before: (_, res) => void res.on('finish', () => heard.push('finish')),
    })
    const socket = connect(await listen(server), '127.0.0.1')
    let received = 0
    socket.write(ask('/', 'Connection: close'))
    socket.pause()
    await pause(60)
    expect(heard).toEqual([])
    socket.on('data', data => (received += data.length)).resume()
    await once(socket, 'close')
    expect(heard).toEqual(['finish'])
    expect(received).toBeGreaterThan(8_000_000)
  })

  it('is not taken for idle by a server that closes while the answer is being stored', async () => {
    const server = createServer((req, res) => {
      const capture = captureResponse(res, req)
      res.end('tea')
      void capture.ended.then(async () => {
        server.close()
        await pause(20)
        capture.release([])
      })
    })
    expect((await get(await listen(server))).body).toBe('tea')
  })

  it('puts the disconnect off for a request whose body nobody has read', async () => {
    const heard: string[] = []
    const server = capturing(
      async (req, res) => {
        for (const event of ['aborted', 'close', 'error']) req.on(event, () => heard.push(event))
        const closed = once(connections[0] ?? server, 'close')
        connections[0]?.destroy()
        await closed
        heard.push(String([req.aborted, req.destroyed, res.destroyed]))
        res.end('tea')
      },
      { released: () => void heard.push('released') },
    )
    const connections: Socket[] = []
    server.on('connection', (socket: Socket) => connections.push(socket))
    const outgoing = request({ port: await listen(server), host: '127.0.0.1', agent: false, method: 'POST' }).on(
      'error',
      () => {},
    )
    outgoing.write('some of it')
    await expect.poll(() => heard).toEqual(['false,false,false', 'aborted', 'released', 'error', 'close'])
    outgoing.destroy()
  })
})
