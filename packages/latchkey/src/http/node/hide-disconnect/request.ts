/** The request whose handler runs: its body has been read, and the client's disconnect is hidden from the handler. */
import { type Covered, coverSharedListener, coverSocket, emitCovered, state } from '../covered.ts'
import type { HiddenSocket } from './socket.ts'
import type { NodeRequest } from '../driver.ts'
import { lay, overlay, takeAway } from '../overlay.ts'
import { liftVeil, veil } from './events.ts'

interface HeldRequest extends Covered<LaidRequest> {
  readonly outer: HeldRequest | undefined
  /** HTTP/1 keeps `aborted` as a plain value, HTTP/2 asks its stream. */
  readonly isPlain: boolean
  /** What the plain value really is by now. */
  aborted: boolean
}

interface LaidRequest extends NodeRequest {
  socket?: unknown
  aborted?: boolean
  [state]?: HeldRequest | undefined
}

const methods = {
  emit(this: LaidRequest, event: string, ...args: unknown[]): boolean {
    const held = this[state]
    if (held === undefined) return false
    const heard = emitCovered(held, event, args)
    if (event === 'aborted' && held.isPlain) hideAborted(held)
    return heard
  },
}
const no = () => false
const onHttp1 = overlay(methods, { destroyed: no })
const onHttp2 = overlay(methods, { destroyed: no, aborted: no })

export interface RequestCover {
  /** The request is itself again. */
  restore(): void
  /** Once the response is itself again too: listeners hear what they missed. */
  lift(): void
}

export function coverRequest(req: NodeRequest, hidden: HiddenSocket): RequestCover {
  const target: LaidRequest = req
  const outer = target[state]
  const isPlain = Object.hasOwn(target, 'aborted')
  const events = veil(target, ['close', 'aborted', 'error'])
  target[state] = outer
  const held: HeldRequest = {
    target,
    veil: events,
    outer,
    laid: lay(target, isPlain ? onHttp1 : onHttp2),
    isPlain,
    aborted: false,
  }
  target[state] = held
  const uncoverListener = coverSharedListener(target)
  const uncoverSocket = coverSocket(target, hidden)
  if (isPlain) hideAborted(held)
  return {
    restore() {
      if (isPlain) target.aborted = held.aborted
      uncoverSocket()
      uncoverListener()
      takeAway(target, held.laid)
      target[state] = outer
    },
    lift: () => liftVeil(events),
  }
}

function hideAborted(held: HeldRequest): void {
  held.aborted = held.target.aborted === true
  held.target.aborted = false
}
