import { once } from 'node:events'
import { type IncomingMessage, OutgoingMessage, request, ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, it } from 'vitest'
import { listenOn, nodeApp } from '../../../test/http/node-app.ts'
import { adapterStores } from '../../../test/http/stores.ts'
import { type AdapterHarness, runAdapterCases } from '@latchkey/conformance'
import { type Capture, type CaptureEnd, captureResponse } from './capture.ts'
import { canHold } from './held-response.ts'

const harness: AdapterHarness = {
  name: 'node:http',
  provides: new Set(['stream', 'broken-stream', 'pipe', 'source', 'file', 'early-hints', 'trailers', 'transactional']),
  ...adapterStores,
  // The context of this adapter is Node's request.
  headerOf: (context, name) => (context as IncomingMessage).headers[name]?.toString(),
  start: app => listenOn(nodeApp(app)),
}

describe('capture on a Node response', () => runAdapterCases(harness, it))

/** Works as Node's class, and is not known as it. */
const unknownClass: object = Object.create(
  OutgoingMessage.prototype,
  Object.getOwnPropertyDescriptors(ServerResponse.prototype),
)

describe('capture on a response of an unknown class', () =>
  runAdapterCases(
    {
      ...harness,
      start(app) {
        const listener = nodeApp(app)
        return listenOn((req, res) => {
          Object.setPrototypeOf(res, unknownClass)
          listener(req, res)
        })
      },
    },
    it,
  ))

it('holds the responses of this Node inside of Node, not on a response of its own', () => {
  expect(canHold).toBe(true)
})

interface Seen {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

/** Runs a handler on a captured response, then releases it; gives what the client saw. */
async function captured(
  handle: (res: ServerResponse, req: IncomingMessage) => unknown,
  {
    before,
    after,
  }: {
    before?: (res: ServerResponse) => void
    after?: (capture: Capture, end: CaptureEnd, res: ServerResponse) => void
  } = {},
): Promise<Seen> {
  const app = await listenOn((req, res) => {
    before?.(res)
    const capture = captureResponse(res, req)
    void handle(res, req)
    void capture.ended.then(end => (after === undefined ? capture.release([]) : after(capture, end, res)))
  })
  try {
    return await get(app.url)
  } finally {
    await app.close()
  }
}

async function get(url: string): Promise<Seen> {
  const outgoing = request(url, { agent: false }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage] // Node's event
  let body = ''
  for await (const chunk of incoming) body += String(chunk)
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, body }
}

describe('what the handler sees while it is captured', () => {
  it('looks sent, ended and finished in the order and at the time it would without Latchkey', async () => {
    const observe = (seen: unknown[]) => (res: ServerResponse) => {
      const look = (what: string) => seen.push([what, res.headersSent, res.writableEnded, res.finished, res.destroyed])
      look('start')
      res.on('finish', () => look(`finish ${res.writableFinished}`))
      res.on('close', () => look('close'))
      res.write('a', () => look('written'))
      look('write')
      expect(() => res.setHeader('X', '1')).toThrow(expect.objectContaining({ code: 'ERR_HTTP_HEADERS_SENT' }))
      expect(() => res.writeHead(200)).toThrow(expect.objectContaining({ code: 'ERR_HTTP_HEADERS_SENT' }))
      res.end('b', () => look('ended'))
      look('end')
    }
    const bare: unknown[] = []
    const app = await listenOn((_, res) => observe(bare)(res))
    await get(app.url)
    await app.close()
    const held: unknown[] = []
    await captured(observe(held))
    expect(held).toHaveLength(7)
    expect(held).toEqual(bare)
  })

  it('sends nothing before the release and the whole afterwards, sized', async () => {
    const app = await listenOn((req, res) => {
      const capture = captureResponse(res, req)
      res.writeHead(202, 'Taken', ['X-A', '1', 'X-A', '2'])
      res.write('one ')
      res.end('two')
      void capture.ended.then(() => setTimeout(() => capture.release([['X-Late', 'yes']]), 100))
    })
    const outgoing = request(app.url, { agent: false }).end()
    let bytes = 0
    outgoing.on('socket', socket => socket.on('data', (data: Buffer) => (bytes += data.length)))
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(bytes).toBe(0)
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage] // Node's event
    expect([incoming.statusCode, incoming.statusMessage, incoming.headers['x-a'], incoming.headers['x-late']]).toEqual([
      202,
      'Taken',
      '1, 2',
      'yes',
    ])
    expect(incoming.headers['content-length']).toBe('7')
    incoming.resume()
    await once(incoming, 'end')
    await app.close()
  })

  it('says false when the usual buffer is full, and drains, without end', async () => {
    let refused = 0
    const block = Buffer.alloc(10_000, 'x')
    const { body } = await captured(async res => {
      for (let written = 0; written < 50; written++) {
        if (res.write(block)) continue
        refused += 1
        expect(res.writableNeedDrain).toBe(true)
        await once(res, 'drain')
      }
      res.end()
    })
    expect([body.length, refused > 4]).toEqual([500_000, true])
  })

  it('keeps the bytes of a buffer that the writer reuses', async () => {
    const { body } = await captured(res => {
      const buffer = Buffer.from('first')
      res.write(buffer, () => {
        buffer.write('again')
        res.end(buffer)
      })
    })
    expect(body).toBe('firstagain')
  })

  it('lets pipeline finish, and treats a source that fails as no clean end', async () => {
    const whole = await captured(res => pipeline(Readable.from(['a', 'b']), res))
    expect(whole.body).toBe('ab')
    const ends: string[] = []
    const failing = Readable.from(
      (function* () {
        yield 'a'
        throw new Error('gone')
      })(),
    )
    const broken = captured(res => pipeline(failing, res).catch(() => {}), {
      after(capture, end) {
        ends.push(end.kind)
        capture.release([])
      },
    })
    await expect(broken).rejects.toThrow(/socket hang up|ECONNRESET/)
    expect(ends).toEqual(['broken'])
  })

  it('takes a response that is shorter than it declared for a broken one', async () => {
    const ends: CaptureEnd[] = []
    await captured(res => res.writeHead(200, { 'Content-Length': '10' }).end('short'), {
      after(capture, end) {
        ends.push(end)
        capture.replace({ status: 504, headers: [], body: Buffer.from('no') })
      },
    })
    expect(ends).toMatchObject([{ kind: 'broken' }])
  })

  it('hides the disconnect on request, response and socket until the handler has ended', async () => {
    const heard: string[] = []
    let state: unknown
    let reached = () => {}
    const inHandler = new Promise<void>(resolve => (reached = resolve))
    let done = (_: CaptureEnd) => {}
    const ended = new Promise<CaptureEnd>(resolve => (done = resolve))
    const app = await listenOn((req, res) => {
      const outside = new Promise<void>(resolve => res.on('close', resolve))
      const capture = captureResponse(res, req)
      for (const event of ['close', 'aborted', 'error']) req.on(event, () => heard.push(`req ${event}`))
      res.on('close', () => heard.push('res close'))
      req.socket.on('close', () => heard.push('socket close'))
      reached()
      void outside.then(() => {
        state = [
          heard.length,
          req.aborted,
          req.destroyed,
          res.destroyed,
          req.socket.destroyed,
          res.socket?.writable,
          req.socket === res.socket,
        ]
        res.end('done')
      })
      void capture.ended.then(end => {
        capture.release([])
        done(end)
      })
    })
    const outgoing = request(app.url, { agent: false })
      .on('error', () => {})
      .end()
    await inHandler
    outgoing.destroy()
    expect(await ended).toMatchObject({ kind: 'whole', response: { status: 200 } })
    expect(state).toEqual([0, false, false, false, false, true, true])
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(heard).toEqual(expect.arrayContaining(['req close', 'res close', 'socket close']))
    await app.close()
  })

  it('runs hooks laid over writeHead: inner ones before the capture ends, outer ones at the release', async () => {
    const hook = (res: ServerResponse, name: string) => {
      const real = res.writeHead
      // Every overload is passed on as it came.
      res.writeHead = function (this: ServerResponse, ...args: unknown[]) {
        res.setHeader(name, 'set')
        return Reflect.apply(real, this, args)
      } as typeof real
    }
    let stored: readonly (readonly [string, string])[] = []
    const { headers } = await captured(
      res => {
        hook(res, 'X-Inner')
        res.end('x')
      },
      {
        before: res => hook(res, 'X-Outer'),
        after(capture, end) {
          if (end.kind === 'whole') stored = end.response.headers
          capture.release([])
        },
      },
    )
    expect([headers['x-inner'], headers['x-outer']]).toEqual(['set', 'set'])
    expect(stored).toEqual([['X-Inner', 'set']])
  })

  it('replaces the answer and leaves nothing of the handler in the head', async () => {
    const { status, headers, body } = await captured(
      res => res.writeHead(200, 'Fine', { ETag: '"1"', 'Content-Encoding': 'gzip', 'X-Before': 'changed' }).end('x'),
      {
        before: res => res.setHeader('X-Before', 'kept'),
        after: capture => capture.replace({ status: 504, headers: [['X-Own', '1']], body: Buffer.from('unknown') }),
      },
    )
    expect([status, body, headers.etag, headers['content-encoding'], headers['x-before'], headers['x-own']]).toEqual([
      504,
      'unknown',
      undefined,
      undefined,
      'kept',
      '1',
    ])
  })

  it('declares a handler that writes to the socket itself unreplayable, and stays out of its way', async () => {
    const ends: CaptureEnd[] = []
    const { body } = await captured(
      res => res.socket?.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'),
      {
        after(capture, end) {
          ends.push(end)
          capture.release([])
        },
      },
    )
    expect([body, ends.map(end => end.kind)]).toEqual(['ok', ['unreplayable']])
  })

  it('shows middleware around it the text that was written', async () => {
    for (const text of ['plain', 'größer']) {
      const seen: string[] = []
      const { body } = await captured(res => res.end(text), {
        before(res) {
          const real = res.end
          // Every overload is passed on as it came. Logs take whatever comes for text or bytes, and look at no encoding.
          res.end = function (this: ServerResponse, ...args: unknown[]) {
            seen.push(String(args[0]))
            return Reflect.apply(real, this, args)
          } as typeof real
        },
      })
      expect([body, seen]).toEqual([text, [text]])
    }
  })

  it('is captured twice where one operation runs inside of another', async () => {
    const ends: CaptureEnd[] = []
    const heard: string[] = []
    const { headers, body } = await captured(
      (res, req) => {
        res.on('finish', () => heard.push('between'))
        const inner = captureResponse(res, req)
        res.on('finish', () => heard.push('innermost'))
        res.setHeader('X-Inner', '1')
        res.end('one')
        void inner.ended.then(end => {
          ends.push(end)
          expect(heard).toEqual(['innermost'])
          expect([res.headersSent, res.writableEnded, res.finished]).toEqual([true, true, true])
          inner.release([['X-Between', '2']])
        })
      },
      {
        after(capture, end) {
          ends.push(end)
          capture.release([['X-Outer', '3']])
        },
      },
    )
    expect([body, headers['x-inner'], headers['x-between'], headers['x-outer']]).toEqual(['one', '1', '2', '3'])
    expect(ends).toMatchObject([
      { kind: 'whole', response: { headers: [['X-Inner', '1']] } },
      {
        kind: 'whole',
        response: {
          headers: expect.arrayContaining([
            ['X-Inner', '1'],
            ['X-Between', '2'],
          ]),
        },
      },
    ])
    expect(heard).toEqual(['innermost', 'between'])
  })

  it('calls a listener once for each place it was added from, outside and inside', async () => {
    const heard: string[] = []
    let released = false
    const listener = () => void heard.push(released ? 'really' : 'as if')
    await captured(res => res.on('finish', listener).end('x'), {
      before: res => res.on('finish', listener),
      after(capture) {
        released = true
        capture.release([])
      },
    })
    expect(heard).toEqual(['as if', 'really'])
  })

  it('holds back the answer to a request that was sent behind another one', async () => {
    const order: string[] = []
    const app = await listenOn((req, res) => {
      const path = String(req.url)
      const capture = captureResponse(res, req)
      setTimeout(() => res.end(path), path === '/first' ? 100 : 0)
      void capture.ended.then(() => {
        order.push(path)
        // The second is written when its turn comes: until then it has no connection.
        if (path === '/second') expect(res.socket).toBe(null)
        capture.release([])
      })
    })
    const socket = connectTcp(Number(new URL(app.url).port), '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', data => (received += data))
    socket.write('GET /first HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await once(socket, 'close')
    expect(order).toEqual(['/second', '/first'])
    expect(received.match(/\/(first|second)$|\/first(?=HTTP)/g)).toEqual(['/first', '/second'])
    await app.close()
  })

  it('hides the disconnect from a request that gets its connection while its handler runs', async () => {
    const states: unknown[] = []
    let done = () => {}
    const ended = new Promise<void>(resolve => (done = resolve))
    const app = await listenOn((req, res) => {
      if (req.url === '/first') return void setTimeout(() => res.end('1'), 20)
      const closed = new Promise<void>(resolve => res.on('close', resolve))
      const capture = captureResponse(res, req)
      void closed.then(() => {
        states.push(res.destroyed, res.socket?.destroyed, req.socket === res.socket)
        res.end('2')
      })
      void capture.ended.then(() => {
        capture.release([])
        states.push(res.destroyed)
        done()
      })
    })
    const socket = connectTcp(Number(new URL(app.url).port), '127.0.0.1')
    socket.write('GET /first HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(socket, 'data')
    socket.destroy()
    await ended
    expect(states).toEqual([false, false, true, true])
    await app.close()
  })

  it('gives the response back as it was', async () => {
    let own: string[] = []
    let back: string[] = []
    const lookAt = (res: ServerResponse) => [
      // Sending sets these two.
      ...Object.getOwnPropertyNames(res)
        .filter(name => name !== 'statusCode' && name !== 'statusMessage')
        .sort(),
      ...['finish', 'close', 'prefinish'].map(event => `${event} ${res.listenerCount(event)}`),
    ]
    await captured(res => res.end('x'), {
      before: res => (own = lookAt(res)),
      after(capture, _, res) {
        capture.release([])
        back = lookAt(res)
      },
    })
    expect(back).toEqual(own)
  })
})

describe('capture on HTTP/2', () => {
  it('holds the answer back, sends it whole, and sets no header of a connection', async () => {
    const ends: CaptureEnd[] = []
    const server = createHttp2Server((req, res) => {
      const capture = captureResponse(res as never, req as never) // the compatibility classes fit by shape, overloads aside
      res.writeHead(201, { 'x-a': '1' })
      res.write('one ')
      res.end('two')
      void capture.ended.then(end => {
        ends.push(end)
        if (req.url === '/released') capture.release([['x-late', 'yes']])
        else capture.replace({ status: 409, headers: [['x-own', '1']], body: Buffer.from('refused') })
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) // a TCP server's address
    const ask = async (path: string) => {
      const stream = client.request({ ':path': path })
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>] // Node's event
      let body = ''
      for await (const chunk of stream) body += String(chunk)
      return { headers, body }
    }
    const released = await ask('/released')
    expect([released.headers[':status'], released.headers['x-a'], released.headers['x-late'], released.body]).toEqual([
      201,
      '1',
      'yes',
      'one two',
    ])
    const replaced = await ask('/replaced')
    expect([replaced.headers[':status'], replaced.headers['x-a'], replaced.headers['x-own'], replaced.body]).toEqual([
      409,
      undefined,
      '1',
      'refused',
    ])
    expect([released, replaced].some(({ headers }) => 'connection' in headers)).toBe(false)
    expect(ends.map(end => end.kind)).toEqual(['whole', 'whole'])
    client.close()
    server.close()
  })
})
