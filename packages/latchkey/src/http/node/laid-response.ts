/** The members that a captured response shows instead of its own. Each finds the capture on the response. */
import { coverSocket, emitCovered, state, under } from './covered.ts'
import { breakOff, end, ensureHead, type Held, isClosed, type LaidResponse, showPlain, write } from './held-response.ts'
import type { Trailers } from './driver.ts'
import { lay, type Laid, type Method, overlay } from './overlay.ts'
import { writeCall } from './response-buffer.ts'
import { headersSent, writeHead } from './virtual-head.ts'

function heldOf(res: LaidResponse): Held {
  const held = res[state]
  if (held === undefined) throw new Error('a captured response has lost its capture: this is a bug in latchkey')
  return held
}

/** What may not be called once the head is out. */
function guarded(name: string): Method {
  return function (this: LaidResponse, ...args: unknown[]) {
    const held = heldOf(this)
    if (held.headSent) throw headersSent(name)
    return under(held, name, args) === undefined ? undefined : this
  }
}

/** 1xx: Node itself writes them at once, for which it needs the real socket. */
function live(name: string): Method {
  return function (this: LaidResponse, ...args: unknown[]) {
    return withRealSocket(heldOf(this), () => under(heldOf(this), name, args))
  }
}

const methods: Readonly<Record<string, Method>> = {
  emit(this: LaidResponse, event: string, ...args: unknown[]) {
    const held = heldOf(this)
    const heard = emitCovered(held, event, args)
    if (event === 'close' && held.isPlain) {
      held.realDestroyed = true
      showPlain(held)
    }
    return heard
  },
  setHeader: guarded('setHeader'),
  setHeaders: guarded('setHeaders'),
  appendHeader: guarded('appendHeader'),
  removeHeader: guarded('removeHeader'),
  writeHead(this: LaidResponse, status: unknown, ...rest: unknown[]) {
    writeHead(heldOf(this), status, rest)
    return this
  },
  flushHeaders(this: LaidResponse) {
    ensureHead(heldOf(this))
  },
  write(this: LaidResponse, chunk: unknown, encoding: unknown, done: unknown) {
    return write(heldOf(this), writeCall(chunk, encoding, done))
  },
  end(this: LaidResponse, chunk: unknown, encoding: unknown, done: unknown) {
    end(heldOf(this), writeCall(chunk, encoding, done))
    return this
  },
  destroy(this: LaidResponse, error?: unknown) {
    const held = heldOf(this)
    if (!held.buffer.ended) breakOff(held, error)
    return this
  },
  addTrailers(this: LaidResponse, trailers: Trailers) {
    const held = heldOf(this)
    // After the end they come too late, as without Latchkey.
    if (!held.buffer.ended) held.trailers = trailers
  },
  cork() {},
  uncork() {},
  writeContinue: live('writeContinue'),
  writeProcessing: live('writeProcessing'),
  writeEarlyHints: live('writeEarlyHints'),
  writeInformation: live('writeInformation'),
}

const flags = {
  closed(this: LaidResponse) {
    return isClosed(heldOf(this))
  },
  headersSent(this: LaidResponse) {
    return heldOf(this).headSent
  },
  writableEnded(this: LaidResponse) {
    return heldOf(this).buffer.ended
  },
  writableFinished(this: LaidResponse) {
    return heldOf(this).buffer.finished
  },
  writableNeedDrain(this: LaidResponse) {
    return heldOf(this).buffer.needsDrain
  },
  writableLength: () => 0,
}

const onHttp1 = overlay(methods, flags)
const onHttp2 = overlay(methods, { ...flags, destroyed: flags.closed, finished: flags.writableEnded })

/** `isPlain`: HTTP/1, where `destroyed` and `finished` are plain values. Reading them is not ours; see `showPlain`. */
export function layOver(res: LaidResponse, isPlain: boolean): Laid {
  return lay(res, isPlain ? onHttp1 : onHttp2)
}

function withRealSocket<T>(held: Held, work: () => T): T {
  held.uncoverSocket()
  try {
    return work()
  } finally {
    held.uncoverSocket = coverSocket(held.target, held.socket)
  }
}
