/** When a response can no longer be held. */
import { isEventStreamType } from '../../exchange/outcome-limit.ts'
import type { Http1Response, OutputEntry } from '../driver.ts'
import { bodySent, brokenOff, type CaptureEnd, findLengthFault } from '../response.ts'
import type { CapturedResponse } from '../../exchange/exchange.ts'

/** A response that is held, and may outgrow that. */
export interface Growing {
  readonly res: Http1Response
  /** What the handler has written. */
  readonly output: OutputEntry[]
  /** The largest body that is held. */
  readonly bytesMax: number
  /** An upper bound of what is held. */
  bytes: number
  /** Up to here the body is certainly within `bytesMax`. */
  bytesAllowed: number
  /** The type of the answer was looked at. */
  isTypeSeen: boolean
}

/** Asked after each write of a handler that has not ended. */
export function hasOutgrown(growing: Growing): boolean {
  const { res, output, bytes, bytesMax } = growing
  if (!growing.isTypeSeen) {
    growing.isTypeSeen = true
    if (isEventStream(res)) return true
  }
  if (bytes <= growing.bytesAllowed) return false
  const { byteLength } = bodySent(res, output)
  // The count is too high: it has the head, the framing of chunks, and texts at their longest.
  growing.bytesAllowed = bytes + bytesMax - byteLength
  return byteLength > bytesMax
}

const typeField = /\r\ncontent-type:([^\r]*)\r\n/i

export function isEventStream({ _header }: Pick<Http1Response, '_header'>): boolean {
  return isEventStreamType(typeField.exec(_header ?? '')?.[1] ?? null)
}

export interface StreamedEnd {
  readonly res: Http1Response
  readonly isFinished: boolean
  /** What it was destroyed with. */
  readonly error: unknown
  /** Without its body. */
  readonly response: CapturedResponse
  /** The length of its body. */
  readonly bytes: number
  readonly isEventStream: boolean
  readonly isClientGone: boolean
}

/** How a response ended that was sent while its handler wrote it. */
export function endOfStream(end: StreamedEnd): CaptureEnd {
  const { res, isFinished, error, response, bytes, isEventStream, isClientGone } = end
  if (isFinished) return findLengthFault(res, bytes) ?? { kind: 'whole', response }
  return isEventStream && isClientGone ? { kind: 'left', status: response.status } : brokenOff(error)
}
