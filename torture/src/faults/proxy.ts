/**
 * A proxy between one application process and the server that holds its keys, controlled by the nemesis: it can cut connections, drop data
 * in one or both directions, delay it, and lose the reply to a last word, such as a COMMIT, that has reached the server.
 */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { LastWord } from '../keys/key-server.ts'

export interface Proxy {
  readonly url: string
  /** Ends every connection, as by a reset. Returns how many. */
  cut(): number
  /** Drops all data silently. Lost bytes stay lost: those connections end at `heal`. */
  goDark(lost: 'both' | 'replies'): void
  slowDown(ms: number): void
  /**
   * The next last word reaches the server, and its reply goes nowhere: the connection ends (`cut`) or stays silent until it
   * is healed (`silence`). `done` is called when it has happened.
   */
  swallowReply(then: 'cut' | 'silence', done: () => void): void
  /** Everything passes again. */
  heal(): void
  close(): Promise<void>
}

interface Link {
  readonly client: Socket
  readonly server: Socket
  /** Bytes were lost on it, so it can never be used again. */
  broken: boolean
  silent: boolean
  swallowing: Swallow | undefined
  /** Bytes under way in slow motion; what follows them may not overtake. */
  readonly underWay: { count: number; delayMs: number }
}

interface Swallow {
  readonly then: 'cut' | 'silence'
  readonly done: () => void
}

interface State {
  readonly lastWord: LastWord
  dark: 'no' | 'both' | 'replies'
  delayMs: number
  armed: Swallow | undefined
}

export async function openProxy(targetUrl: string, lastWord: LastWord): Promise<Proxy> {
  const target = new URL(targetUrl)
  const links = new Set<Link>()
  const state: State = { lastWord, dark: 'no', delayMs: 0, armed: undefined }
  const listener = createServer({ noDelay: true }, client => {
    const server = connect({ port: Number(target.port), host: target.hostname, noDelay: true })
    const link: Link = {
      client,
      server,
      broken: false,
      silent: false,
      swallowing: undefined,
      underWay: { count: 0, delayMs: 0 },
    }
    links.add(link)
    join(link, state, () => links.delete(link))
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const through = new URL(targetUrl)
  through.port = String((listener.address() as AddressInfo).port) // listening on TCP
  return {
    url: through.href,
    cut() {
      const count = links.size
      for (const link of links) end(link)
      return count
    },
    goDark(lost) {
      state.dark = lost
    },
    slowDown(ms) {
      state.delayMs = ms
    },
    swallowReply(then, done) {
      state.armed = { then, done }
    },
    heal() {
      Object.assign(state, { dark: 'no', delayMs: 0, armed: undefined })
      for (const link of links) if (link.broken || link.silent) end(link)
    },
    async close() {
      for (const link of links) end(link)
      await new Promise(resolve => listener.close(resolve))
    },
  }
}

function join(link: Link, state: State, forget: () => void): void {
  const { client, server } = link
  client.on('data', bytes => {
    if (lost(link, state.dark === 'both')) return
    if (state.armed !== undefined && state.lastWord.isIn(bytes)) {
      link.swallowing = state.armed
      state.armed = undefined
    }
    pass(link, server, { bytes, delayMs: state.delayMs })
  })
  server.on('data', bytes => {
    if (link.swallowing !== undefined) return swallow(link, link.swallowing)
    if (lost(link, state.dark !== 'no')) return
    pass(link, client, { bytes, delayMs: state.delayMs })
  })
  for (const socket of [client, server]) {
    socket.on('error', () => {}) // A broken connection is the purpose; the ends notice by themselves.
    socket.on('close', () => {
      // While dark, a closed connection is not passed on.
      if (state.dark === 'no' && !link.silent) end(link)
      if (client.destroyed && server.destroyed) forget()
    })
  }
}

function lost(link: Link, dark: boolean): boolean {
  if (dark) link.broken = true
  return link.broken || link.silent
}

/** The first byte of an answer means that the server has executed the statement. */
function swallow(link: Link, { then, done }: Swallow): void {
  link.swallowing = undefined
  if (then === 'cut') end(link)
  else link.silent = true
  done()
}

/** Timers of one length fire in order, so the bytes keep theirs. */
function pass({ underWay }: Link, to: Socket, { bytes, delayMs }: { bytes: Buffer; delayMs: number }): void {
  if (underWay.count === 0) underWay.delayMs = delayMs
  if (underWay.delayMs === 0) return void to.write(bytes)
  underWay.count += 1
  setTimeout(() => {
    underWay.count -= 1
    if (!to.destroyed) to.write(bytes)
  }, underWay.delayMs)
}

function end({ client, server }: Link): void {
  client.destroy()
  server.destroy()
}
