/** Responses that stream, on their connection and under real middleware. */
import { once } from 'node:events'
import { createServer, get as httpGet, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { engine } from '../../../engine/internal.ts'
import { attemptOfCapture, type Capture, type CaptureEnd, captureResponse, holdAnswer } from '../capture.ts'

type Handler = (req: IncomingMessage, res: ServerResponse) => unknown

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port // it listens on TCP
}

const bytesMax = 1_000

interface Stage {
  readonly before?: Handler
  /** Default: released. */
  readonly after?: (capture: Capture, end: CaptureEnd) => void
}

function capturing(handle: Handler, { before, after }: Stage = {}): Server {
  return createServer((req, res) => {
    void before?.(req, res)
    const capture = captureResponse(res, req, bytesMax)
    void handle(req, res)
    void capture.ended.then(end => (after === undefined ? capture.release([]) : after(capture, end)))
  })
}

async function ask(port: number): Promise<IncomingMessage> {
  const outgoing = httpGet({ port, host: '127.0.0.1', agent: false, headers: { 'Accept-Encoding': 'gzip' } })
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage] // Node's event
  return incoming
}

async function textOf(readable: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of readable) text += String(chunk)
  return text
}

describe('what is held', () => {
  it('is a body of exactly the limit, however it was cut and encoded', async () => {
    const ends: CaptureEnd[] = []
    const handlers: Handler[] = [
      async (_, res) => {
        for (let at = 0; at < bytesMax; at++) {
          res.write('x')
          if (at % 100 === 0) await pause(1)
        }
        res.end()
      },
      async (_, res) => {
        res.write('ü'.repeat(bytesMax / 2))
        await pause(5)
        res.end()
      },
    ]
    for (const handle of handlers) {
      const after: Stage['after'] = (capture, end) => {
        ends.push(end)
        expect(capture.isStreaming).toBe(false)
        capture.release([])
      }
      const text = await textOf(await ask(await listen(capturing(handle, { after }))))
      expect(Buffer.byteLength(text)).toBe(bytesMax)
    }
    expect(ends.map(end => end.kind === 'whole' && end.response.body?.byteLength)).toEqual([bytesMax, bytesMax])
  })

  it('is not a byte more, if the handler still writes', async () => {
    let isStreaming: boolean | undefined
    const server = capturing(
      async (_, res) => {
        res.write('x'.repeat(bytesMax + 1))
        await pause(5)
        res.end()
      },
      {
        after(capture) {
          isStreaming = capture.isStreaming
          capture.release([])
        },
      },
    )
    expect((await textOf(await ask(await listen(server)))).length).toBe(bytesMax + 1)
    expect(isStreaming).toBe(true)
  })

  it('is any answer whose handler has ended', async () => {
    const server = createServer((req, res) => {
      const capture = captureResponse(res, req, bytesMax)
      res.write('x'.repeat(50_000))
      res.end('x'.repeat(50_000))
      void capture.ended.then(async () => {
        await pause(50)
        expect(received).toBe(0)
        capture.release([])
      })
    })
    let received = 0
    const outgoing = httpGet({ port: await listen(server), host: '127.0.0.1', agent: false })
    outgoing.on('socket', (socket: Socket) => socket.on('data', data => (received += data.length)))
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage] // Node's event
    expect((await textOf(incoming)).length).toBe(100_000)
  })
})

describe('a handler whose response streams', () => {
  it('hears of its writes when they are sent, and without an error when the client has left', async () => {
    const written: unknown[] = []
    let leave = () => {}
    const server = capturing(async (_, res) => {
      res.write('x'.repeat(2_000))
      await pause(10)
      for (let at = 0; at < 3; at++) {
        await new Promise<void>(resolve => {
          res.write('x'.repeat(2_000), error => {
            written.push(error)
            resolve()
          })
        })
        if (at === 0) leave()
        await pause(20)
      }
      res.end()
    })
    const incoming = await ask(await listen(server))
    incoming.on('error', () => {})
    leave = () => incoming.destroy()
    await expect.poll(() => written).toEqual([undefined, undefined, undefined])
  })

  it('waits for its turn behind another request, without its bytes in memory', async () => {
    let written = 0
    let answerFirst = () => {}
    async function* blocks() {
      for (; written < 20_000_000; written += 65_536) yield Buffer.alloc(65_536, 'x')
    }
    const server = capturing((req, res) => {
      if (req.url === '/1') answerFirst = () => res.end('one')
      else pipeline(Readable.from(blocks()), res, () => {})
    })
    const socket = connect(await listen(server), '127.0.0.1')
    let received = 0
    socket.on('data', data => (received += data.length))
    socket.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await expect.poll(() => written).toBeGreaterThan(0)
    await pause(50)
    expect(written).toBeLessThan(500_000)
    answerFirst()
    await once(socket, 'close')
    expect(received).toBeGreaterThan(20_000_000)
  })

  it('is cut off with a reset where only the end of the connection ends the answer', async () => {
    const server = capturing(
      async (_, res) => {
        res.write('x'.repeat(5_000))
        await pause(20)
        res.end()
      },
      { after: capture => capture.replace({ status: 409, headers: [], body: new Uint8Array() }) },
    )
    const socket = connect(await listen(server), '127.0.0.1')
    socket.resume().write('GET / HTTP/1.0\r\n\r\n')
    await expect(once(socket, 'close')).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('is not kept from the client by outer code that has corked the connection', async () => {
    let end = () => {}
    const server = capturing(
      (_, res) => {
        res.write('x'.repeat(5_000))
        end = () => res.end()
      },
      { before: req => req.socket.cork() },
    )
    const incoming = await ask(await listen(server))
    let received = 0
    incoming.on('data', (data: Buffer) => (received += data.length))
    await expect.poll(() => received).toBe(5_000)
    end()
    await once(incoming, 'end')
  })

  it('keeps the connection for the next request', async () => {
    const server = capturing(async (req, res) => {
      res.write(String(req.url).repeat(1_000))
      await pause(5)
      res.end()
    })
    const socket = connect(await listen(server), '127.0.0.1').setEncoding('latin1')
    socket.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    const text = await textOf(socket)
    expect(text.match(/HTTP\/1.1 200/g)).toHaveLength(2)
    expect([text.includes('/1/1'), text.endsWith('0\r\n\r\n')]).toEqual([true, true])
  })
})

describe('the end of a response that streams', () => {
  const operation = { [engine]: { settings: { outcomeBytesMax: bytesMax } } }
  const attempt = { kind: 'unreplayable', status: 200, why: 'a test' } as const

  const concluding = (stored: 'yes' | 'failed' | 'unprotected') =>
    createServer((req, res) => {
      const held = holdAnswer(res, req, { operation })
      res.write('x'.repeat(5_000))
      setTimeout(() => res.end(), 20)
      void held.ended.then(() => held.conclude({ kind: 'release', attempt, stored, headers: [['X-Late', '1']] }))
    })

  it.each(['yes', 'unprotected'] as const)('is sent, without headers that come too late: %s', async stored => {
    const incoming = await ask(await listen(concluding(stored)))
    expect([(await textOf(incoming)).length, incoming.headers['x-late']]).toEqual([5_000, undefined])
  })

  it('is not sent when the store has not taken it', async () => {
    const incoming = await ask(await listen(concluding('failed')))
    await expect(textOf(incoming)).rejects.toThrow('aborted')
  })
})

describe('a stream of events', () => {
  const beginEvents = (res: ServerResponse) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
    res.flushHeaders()
  }

  it('is begun with its head, and shows the disconnect on request, response and socket', async () => {
    const heard: string[] = []
    const ends: CaptureEnd[] = []
    const server = capturing(
      (req, res) => {
        res.on('close', () => heard.push(`response ${res.destroyed}`))
        req.socket.on('close', () => heard.push('socket'))
        req.on('close', () => heard.push('request'))
        beginEvents(res)
      },
      {
        after(capture, end) {
          ends.push(end)
          capture.release([])
        },
      },
    )
    const incoming = await ask(await listen(server))
    expect([incoming.headers['content-type'], heard]).toEqual(['text/event-stream', []])
    incoming.destroy()
    await expect.poll(() => heard.toSorted()).toEqual(['request', 'response true', 'socket'])
    expect(ends).toEqual([{ kind: 'left', status: 200 }])
  })

  it('counts as what its handler threw when the client had left', () => {
    const left: CaptureEnd = { kind: 'left', status: 200 }
    const error = new Error('stopped half-way')
    expect([attemptOfCapture(left).kind, attemptOfCapture(left, error)]).toEqual([
      'unreplayable',
      { kind: 'threw', error },
    ])
  })

  it('may be ended by its handler', async () => {
    const ends: CaptureEnd[] = []
    const server = capturing(
      async (_, res) => {
        beginEvents(res)
        await pause(10)
        res.end('data: 1\n\n')
      },
      {
        after(capture, end) {
          ends.push(end)
          capture.release([])
        },
      },
    )
    expect(await textOf(await ask(await listen(server)))).toBe('data: 1\n\n')
    expect(ends).toMatchObject([{ kind: 'whole', response: { status: 200, body: undefined } }])
  })
})

const load = createRequire(import.meta.url)
type Middleware = (req: IncomingMessage, res: ServerResponse, next: () => void) => void
const compressions = [
  ['compression 1.7', load('compression17') as () => Middleware],
  ['compression 1.8', load('compression') as () => Middleware],
] as const
const session = load('express-session') as (options: object) => Middleware
const responseTime = load('response-time') as () => Middleware

/** Blocks of text that does not compress well, as fast as they are read. */
async function* texts(): AsyncGenerator<string> {
  let state = 1
  for (let at = 0; at < 60; at++) {
    let text = ''
    while (text.length < 20_000) text += (state = (state * 48_271) % 2_147_483_647).toString(36)
    yield text
    if (at % 10 === 0) await pause(1)
  }
}

const sendTexts: Handler = (_, res) => {
  res.setHeader('Content-Type', 'text/plain')
  pipeline(Readable.from(texts()), res, () => {})
}

const nothing = () => {}

describe.each(compressions)('%s around a response that streams', (_, compression) => {
  it.each(['outside', 'inside', 'outside and inside'])('packs it whole: %s', async place => {
    const ends: CaptureEnd[] = []
    const server = capturing(
      (req, res) => {
        if (place.includes('inside')) compression()(req, res, nothing)
        sendTexts(req, res)
      },
      {
        before: (req, res) => (place.includes('outside') ? compression()(req, res, nothing) : undefined),
        after(capture, end) {
          expect(capture.isStreaming).toBe(true)
          ends.push(end)
          capture.release([])
        },
      },
    )
    const incoming = await ask(await listen(server))
    expect(incoming.headers['content-encoding']).toBe('gzip')
    expect((await textOf(incoming.pipe(createGunzip()))) === (await textOf(texts()))).toBe(true)
    expect(ends.map(end => end.kind)).toEqual(['whole'])
  })
})

describe('other middleware around a response that streams', () => {
  const rewrapping: Handler = (_, res) => {
    const { write } = res
    // Every overload is passed on as it came.
    res.write = function (this: ServerResponse, ...args: unknown[]) {
      return Reflect.apply(write, this, args)
    } as typeof write
  }

  it('gets what the handler has corked, and what Node itself gathers', async () => {
    const large = 'a'.repeat(2_000)
    let stillCorked: number | undefined
    const corked: Handler = async (_, res) => {
      res.write(large)
      res.cork()
      res.write('b')
      await pause(10)
      stillCorked = res.writableCorked
      res.write('c')
      res.uncork()
      await pause(10)
      res.end('d')
    }
    // Node 26 sends the first piece in the tick after its write. The second is written before Latchkey sees the first.
    const inTheNextTick: Handler = (_, res) => {
      res.write(large)
      process.nextTick(() => {
        res.write('b')
        setTimeout(() => {
          res.write('c')
          setTimeout(() => res.end('d'), 10)
        }, 10)
      })
    }
    for (const handle of [corked, inTheNextTick]) {
      const text = await textOf(await ask(await listen(capturing(handle, { before: rewrapping }))))
      expect(text.replace(large, 'A')).toBe('Abcd')
    }
    // Node 20 corks the socket alone, and counts there.
    expect(stillCorked).toBe(Number.parseInt(process.versions.node, 10) < 22 ? 0 : 1)
  })

  it('gets what inner middleware passes on, which has kept the methods it found', async () => {
    const [, compression] = compressions[1]
    let writes = 0
    const count: Handler = (_, res) => {
      const { write } = res
      // Every overload is passed on as it came.
      res.write = function (this: ServerResponse, ...args: unknown[]) {
        writes += 1
        return Reflect.apply(write, this, args)
      } as typeof write
    }
    const server = capturing(
      (req, res) => {
        count(req, res)
        sendTexts(req, res)
      },
      { before: (req, res) => compression()(req, res, nothing) },
    )
    const incoming = await ask(await listen(server))
    const text = await textOf(incoming.pipe(createGunzip())).catch(String)
    expect([text === (await textOf(texts())), writes]).toEqual([true, 60])
  })

  it('adds its headers to what is sent, and not to what is stored', async () => {
    const ends: CaptureEnd[] = []
    const server = capturing(sendTexts, {
      before(req, res) {
        session({ secret: 's', resave: false, saveUninitialized: true })(req, res, nothing)
        responseTime()(req, res, nothing)
      },
      after(capture, end) {
        ends.push(end)
        capture.release([])
      },
    })
    const incoming = await ask(await listen(server))
    expect((await textOf(incoming)) === (await textOf(texts()))).toBe(true)
    expect([incoming.headers['set-cookie']?.length, typeof incoming.headers['x-response-time']]).toEqual([1, 'string'])
    expect(ends).toMatchObject([{ response: { headers: [['Content-Type', 'text/plain']], body: undefined } }])
  })
})
