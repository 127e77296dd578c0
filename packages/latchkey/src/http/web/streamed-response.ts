/**
 * A fetch response that is larger than what is stored, or that may never end: the client reads it while its handler writes it. The end of
 * the body waits until the row says that it happened, and with a declared length the bytes that reach it do.
 */
import type { Attempt } from '../../engine/answer.ts'
import { attemptOf, type CapturedResponse, type Exchange } from '../exchange/exchange.ts'
import { readChunk } from './body.ts'
import { ownSignal, showDisconnect } from './request.ts'

export interface StreamedBody {
  /** Without its body. */
  readonly captured: CapturedResponse
  /** The response was rendered from this throw. */
  readonly error: unknown
  readonly reader: ReadableStreamDefaultReader<Uint8Array>
  /** What was read of it so far. */
  readonly chunks: Uint8Array[]
  /** The request that `hideDisconnect` was given. */
  readonly request: object
  /** Its handler sees the client leave, because nothing else may ever end it. Any other source is read to its end. */
  readonly isEventStream: boolean
}

export interface FetchStream {
  readonly body: ReadableStream<Uint8Array>
  /** Settles when the source has ended, whichever reader drains it. */
  readonly attempt: Promise<Attempt>
  /** Ends the body, or breaks it off where the answer does not hold. Without a result: the exchange failed. */
  conclude(result?: Exchange): void
}

export function streamBody({ captured, error, reader, chunks, request, isEventStream }: StreamedBody): FetchStream {
  const attempt = deferred<Attempt>()
  const concluded = deferred<Exchange | undefined>()
  const source = readSource()
  let isLeft = false
  let breakOff: (error: Error) => void = () => {}

  async function* readSource(): AsyncGenerator<Uint8Array, void> {
    let rest: readonly Uint8Array[]
    try {
      rest = yield* readDeclared(chunksFrom(chunks, reader), lengthOf(captured))
    } catch (broken) {
      // No clean end, so no outcome: what the operation declares about failures decides.
      attempt.resolve({ kind: 'threw', error: error ?? broken })
      throw broken
    }
    attempt.resolve(attemptOf(captured, error))
    if (!holds(await concluded.promise)) throw replaced()
    yield* rest
  }

  async function readToEnd(): Promise<void> {
    // A turn of the event loop for each: a fast source must not starve the process.
    for await (const _ of source) await new Promise(resolve => setImmediate(resolve))
  }

  function leave(): void {
    if (isLeft) return
    isLeft = true
    breakOff(clientGone())
    if (!isEventStream) return void readToEnd().catch(() => {})
    attempt.resolve({ kind: 'unreplayable', status: captured.status, why: 'the client left the event stream' })
    showDisconnect(request)
    reader.cancel().catch(() => {})
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        breakOff = broken => controller.error(broken)
      },
      async pull(controller) {
        const { done, value } = await source.next()
        if (isLeft) return
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: leave,
    },
    // Nothing is read before the client asks for it.
    { highWaterMark: 0 },
  )
  // A server may not cancel what it cannot send.
  const signal = ownSignal(request)
  if (signal?.aborted === true) leave()
  else signal?.addEventListener('abort', leave, { once: true })
  return {
    body,
    attempt: attempt.promise,
    conclude(result) {
      concluded.resolve(result)
      if (holds(result) || isLeft) return
      breakOff(replaced())
      // Its handler may still be writing, and no client reads it any more.
      reader.cancel().catch(() => {})
    },
  }
}

/** Returns what completes a body of the declared length. */
async function* readDeclared(
  chunks: AsyncIterable<Uint8Array>,
  declared: number | undefined,
): AsyncGenerator<Uint8Array, readonly Uint8Array[]> {
  const rest: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (declared === undefined || bytes < declared) yield chunk
    else if (bytes === declared) rest.push(chunk)
    else break
  }
  if (declared === undefined || bytes === declared) return rest
  throw new Error(`the response declared ${declared} bytes and had ${bytes}${bytes > declared ? ' or more' : ''}`)
}

async function* chunksFrom(
  chunks: Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) yield chunk
  for (;;) {
    const chunk = await readChunk(reader)
    if (chunk === undefined) return
    if (chunk.byteLength > 0) yield chunk
  }
}

/** What the store did not take is sent with a mark, and it is too late to mark a response that streams. */
function holds(result: Exchange | undefined): boolean {
  return result?.kind === 'release' && result.stored !== 'failed'
}

/** Servers know the code, and do not log it as a failure. */
function clientGone(): Error {
  return Object.assign(new Error('the client has left'), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
}

function replaced(): Error {
  return new Error('the answer was replaced after a part of it had been sent')
}

/** The handler's own declaration. */
function lengthOf({ headers }: CapturedResponse): number | undefined {
  const length = headers.find(([name]) => name.toLowerCase() === 'content-length')
  return length === undefined ? undefined : Number(length[1])
}

function deferred<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>(settled => (resolve = settled))
  return { promise, resolve: value => resolve(value) }
}
