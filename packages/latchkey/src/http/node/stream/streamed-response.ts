/**
 * A held response that is larger than what is stored, or that may never end. From then on its bytes go to the client as fast as the
 * client reads them. The piece that completes the response stays held until the row says that it happened: no client has a whole answer
 * before that.
 */
import { addedHeaders, type CapturedResponse } from '../../exchange/exchange.ts'
import type { OutputEntry } from '../driver.ts'
import { drain, isWaiting, retain, takeListeners } from '../stand-in-socket.ts'
import type { Held } from '../held-response.ts'
import { callHook, type Hooks, useHooks } from '../hooks.ts'
import { endOfStream, isEventStream } from './response-growth.ts'
import { bodySent, type CaptureEnd, headersSent, setHeaders, uncork } from '../response.ts'
import { restart } from '../restart.ts'

export interface StreamedResponse {
  /** Without its body. */
  readonly response: CapturedResponse
  /** Its handler sees the client leave, because nothing else may ever end it. */
  readonly isEventStream: boolean
  /** With the head. */
  bytesPassed: number
  /** The piece that completes the response is held. */
  isComplete: boolean
  /** The handler wrote more than it had declared. */
  isTooLong: boolean
  isClientGone: boolean
  clientGone(): void
  /** Stops listening to the connection. */
  unwatch(): void
}

/** `showDisconnect`: called when the client has left an event stream. */
export function startStream(held: Held, showDisconnect: (held: Held) => void): void {
  const { res, before, hooks } = held
  const streamed: StreamedResponse = {
    response: { status: res.statusCode, headers: addedHeaders(before, headersSent(res)), body: undefined },
    isEventStream: isEventStream(res),
    bytesPassed: 0,
    isComplete: false,
    isTooLong: false,
    isClientGone: false,
    clientGone() {
      if (streamed.isClientGone || held.isReleased) return
      streamed.isClientGone = true
      passOn(held, streamed, [])
      if (streamed.isEventStream) showDisconnect(held)
    },
    unwatch() {},
  }
  held.streamed = streamed
  watch(held, streamed)
  if (hooks === undefined) passOn(held, streamed, held.output.splice(0))
  else passThroughHooks(held, hooks)
}

function watch(held: Held, streamed: StreamedResponse): void {
  const { socket } = held
  const drained = () => passOn(held, streamed, [])
  streamed.unwatch = socket.watchReal({ drained, closed: streamed.clientGone })
  if (socket.isRealGone) process.nextTick(streamed.clientGone)
}

/** The response got its connection: the one ahead of it has been sent. */
export function takeTurn(held: Held, streamed: StreamedResponse): void {
  streamed.unwatch()
  watch(held, streamed)
  passOn(held, streamed, [])
}

/** Through the methods of outer middleware, which the handler calls as well from now on. */
function passThroughHooks(held: Held, hooks: Hooks): void {
  const { res, output } = held
  const { statusCode, statusMessage, _trailer } = res
  // What waits in the response would be forgotten with the rest. Node 26 gathers there what is written in one tick.
  const corked = uncork(res)
  retain(held, res.outputData.splice(0))
  const [headers, body, isBlocked] = [headersSent(res), bodySent(res, output), isWaiting(res)]
  // Compression has a 'drain' of its own.
  const listeners = takeListeners(res, 'drain')
  output.length = 0
  const interim = held.interim.splice(0)
  restart(held)
  held.interim.push(...interim)
  Object.assign(res, { statusCode, statusMessage, _trailer })
  for (let left = corked; left > 0; left -= 1) res.cork()
  useHooks(res, hooks)
  setHeaders(res, headers)
  const isFull = callHook(res, body.byteLength > 0 ? ['write', [body]] : ['flushHeaders', []]) === false
  for (const listener of listeners) res.on('drain', listener)
  if (isBlocked && !isFull) setImmediate(() => listeners.forEach(listener => Reflect.apply(listener, res, [])))
}

/** Does to the output what writing it to the real socket does. */
export function passOn(held: Held, streamed: StreamedResponse, entries: readonly OutputEntry[]): void {
  const { res, socket } = held
  // Until then the connection belongs to the answer of an earlier request, and the handler waits.
  const isInTurn = res.socket !== null || streamed.isClientGone
  if (streamed.isComplete) ignore(held, streamed, entries)
  else if (isInTurn) pass(held, streamed, [...held.output.splice(0), ...entries])
  else retain(held, entries)
  const isFull = !isInTurn || socket.isRealFull
  // Node's `write` answers by this size.
  res.outputSize = isFull ? res.writableHighWaterMark : 0
  // One turn of the event loop for each full buffer: a fast source must not starve the process.
  if (!isFull && isWaiting(res)) setImmediate(drain, held)
}

function pass(held: Held, streamed: StreamedResponse, entries: readonly OutputEntry[]): void {
  let at = 0
  for (const entry of entries) {
    if (completes(held, streamed, entry)) break
    streamed.bytesPassed += sizeOf(entry)
    at += 1
  }
  held.socket.writeAllReal([...held.interim.splice(0), ...entries.slice(0, at)])
  streamed.isComplete = at < entries.length
  retain(held, entries.slice(at))
}

/** With its length declared, a client takes the answer for whole before the handler has ended it. */
function completes(held: Held, streamed: StreamedResponse, entry: OutputEntry): boolean {
  const { res } = held
  const { _contentLength: declared, chunkedEncoding } = res
  if (res.finished) return true
  return !chunkedEncoding && declared !== null && bodyBytes(held, streamed) + sizeOf(entry) >= declared
}

/** More than the handler has declared is never sent. */
function ignore(held: Held, streamed: StreamedResponse, entries: readonly OutputEntry[]): void {
  streamed.isTooLong ||= entries.some(({ data }) => data.length > 0)
  retain(
    held,
    entries.map(entry => ({ ...entry, data: '' })),
  )
}

function bodyBytes({ res, hasBegun }: Held, { bytesPassed }: StreamedResponse): number {
  return hasBegun ? bytesPassed : bytesPassed - String(res._header).length
}

function sizeOf({ data, encoding }: OutputEntry): number {
  return typeof data === 'string' ? Buffer.byteLength(data, encoding ?? 'utf8') : data.byteLength
}

export function endOfStreamed(held: Held, streamed: StreamedResponse): CaptureEnd {
  const { res, isFinished, error, output } = held
  const bytes = output.reduce((sum, entry) => sum + sizeOf(entry), bodyBytes(held, streamed))
  return endOfStream({ ...streamed, res, isFinished, error, bytes: streamed.isTooLong ? Infinity : bytes })
}
