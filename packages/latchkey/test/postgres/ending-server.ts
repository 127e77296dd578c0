/** A server that speaks enough of PostgreSQL's protocol to be connected to and asked, and that ends its connections when it is told to. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/** The last words of a server that shuts down; an answer that never ends; an end without a word. */
export const endings = ['fatal', 'reset', 'close'] as const
export type Ending = (typeof endings)[number]

export interface Script {
  readonly ending: Ending
  /** What the connection ends at: the greeting, a statement that matches, or the client's goodbye. Absent: only when told to. */
  readonly at?: 'startup' | 'goodbye' | RegExp
  /** What comes before the end, in the same bytes. Default: the answer. */
  readonly before?: 'answer' | 'nothing'
  /** A statement that matches is refused, as by a server about to go down. */
  readonly refuses?: RegExp
}

export interface EndingServer {
  readonly port: number
  /** Ends every connection now. */
  end(): void
  close(): Promise<void>
}

export async function startEndingServer(script: Script): Promise<EndingServer> {
  const sockets = new Set<Socket>()
  const server: Server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', conversation(socket, script))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    // A server on TCP has an address of this form.
    port: (server.address() as AddressInfo).port,
    end: () => sockets.forEach(socket => finish(socket, script.ending, nothing)),
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
}

const nothing = Buffer.alloc(0)
const ready = message('Z', Buffer.from('I'))
const goodbye = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'
const refusal = 'SERROR\0VERROR\0C57P03\0Mthe database system is shutting down\0\0'

function finish(socket: Socket, ending: Ending, before: Buffer): void {
  switch (ending) {
    case 'fatal':
      return void socket.end(Buffer.concat([before, message('E', Buffer.from(goodbye))]))
    case 'close':
      return void socket.end(before)
    case 'reset':
      return before.length === 0
        ? void socket.resetAndDestroy()
        : void socket.write(before, () => socket.resetAndDestroy())
  }
}

/** Reads the client's messages as they come, and answers each Query and each Sync. */
function conversation(socket: Socket, { ending, at, before = 'answer', refuses }: Script): (chunk: Buffer) => void {
  let rest: Buffer = nothing
  let started = false
  let text = ''
  const end = (answer: Buffer) => finish(socket, ending, before === 'answer' ? answer : nothing)
  const reply = (statement: string, answer: Buffer) => {
    if (at instanceof RegExp && at.test(statement)) return end(answer)
    socket.write(refuses?.test(statement) ? Buffer.concat([message('E', Buffer.from(refusal)), ready]) : answer)
  }
  const hear = (type: string, body: Buffer) => {
    if (type === 'X' && at === 'goodbye') return end(nothing)
    if (type === 'P') text = textOf(body.subarray(body.indexOf(0) + 1))
    if (type === 'Q') reply(textOf(body), Buffer.concat([complete(textOf(body)), ready]))
    if (type === 'S') reply(text, Buffer.concat([message('1'), message('2'), message('n'), complete(text), ready]))
  }
  return chunk => {
    rest = Buffer.concat([rest, chunk])
    if (!started) {
      started = true
      rest = rest.subarray(rest.readInt32BE(0))
      const greeting = Buffer.concat([message('R', Buffer.alloc(4)), ready])
      if (at === 'startup') return end(greeting)
      socket.write(greeting)
    }
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const size = rest.readInt32BE(1) + 1
      hear(rest.toString('latin1', 0, 1), rest.subarray(5, size))
      rest = rest.subarray(size)
    }
  }
}

function textOf(body: Buffer): string {
  return body.toString('utf8', 0, body.indexOf(0))
}

function complete(text: string): Buffer {
  const command = /^\w+/.exec(text)?.[0].toUpperCase() ?? ''
  return message('C', Buffer.from(`${command}${command === 'INSERT' ? ' 0 1' : ''}\0`))
}

function message(type: string, body: Buffer = nothing): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 0)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
