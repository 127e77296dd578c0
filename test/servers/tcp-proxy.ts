import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

/** A wire between a client and a server that can be cut at a chosen word. */
export interface TcpProxy {
  readonly port: number
  /** The same address with the proxy's host and port. */
  through(url: string): string
  /**
   * The next message from a client that contains `word` is lost together with its connection: `request` before it reaches
   * the server, `reply` after the server has answered it. Resolves when the wire is cut.
   */
  cutAt(word: string | Buffer, lost: 'request' | 'reply'): Promise<void>
  /** From the next message on that contains `word`, all that clients send arrives, and no reply comes back until the wire is mended. */
  muteAt(word: string): void
  /**
   * From now on nothing that is sent arrives, in either direction, and no connection is cut: as when a network is divided. `from`: only on
   * connections that come from this address.
   */
  silence(from?: string): void
  /** Cuts what was muted or silenced; new connections are whole. */
  mend(): void
  close(): Promise<void>
}

interface Cut {
  readonly word: string | Buffer
  readonly lost: 'request' | 'reply'
  done(): void
}

export async function startTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const target = new URL(targetUrl)
  const sockets = new Set<Socket>()
  let armed: Cut | undefined
  let muted = false
  let silent: string | boolean = false
  let muteWord: string | undefined
  const takeCut = (message: Buffer): Cut | undefined => {
    if (armed === undefined || !message.includes(armed.word)) return undefined
    const cut = armed
    armed = undefined
    return cut
  }
  const server = createServer(client => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) track(socket, sockets)
    const from = client.remoteAddress
    const isSilent = () => silent === true || silent === from
    join(client, upstream, { takeCut, isMuted: () => muted || isSilent(), isSilent })
    client.prependListener('data', message => {
      if (muteWord !== undefined && message.includes(muteWord)) muted = true
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    through(url) {
      const changed = new URL(url)
      changed.hostname = '127.0.0.1'
      changed.port = String(port)
      return changed.href
    },
    cutAt: (word, lost) =>
      new Promise(done => {
        armed = { word, lost, done }
      }),
    muteAt(word) {
      muteWord = word
    },
    silence(from) {
      silent = from ?? true
    },
    mend() {
      for (const socket of sockets) socket.destroy()
      muteWord = undefined
      muted = false
      silent = false
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

function track(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  // A cut wire is the purpose here; the ends notice by themselves.
  socket.on('error', () => {})
}

interface Faults {
  takeCut(message: Buffer): Cut | undefined
  isMuted(): boolean
  isSilent(): boolean
}

function join(client: Socket, upstream: Socket, { takeCut, isMuted, isSilent }: Faults): void {
  let losing: Cut | undefined
  const cutWire = (cut: Cut) => {
    client.destroy()
    upstream.destroy()
    cut.done()
  }
  client.on('data', message => {
    if (isSilent()) return
    const cut = takeCut(message)
    if (cut?.lost === 'request') return cutWire(cut)
    losing ??= cut
    upstream.write(message)
  })
  upstream.on('data', message => {
    // The first byte of an answer means that the server has done what it was asked.
    if (losing !== undefined) return cutWire(losing)
    if (isMuted()) return
    client.write(message)
  })
  client.on('close', () => upstream.destroy())
  upstream.on('close', () => client.destroy())
}
