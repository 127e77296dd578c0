/** An outcome whose headers and body are sealed in one value. Status and version stay readable. */
import { isSealedOutcome, sealedOutcomeHeaders } from '../../ports/sealed-marks.ts'
import type { Header, Outcome } from '../../ports/outcome.ts'
import type { Keyring } from './keyring.ts'
import { type NotOpened, notOpened, open, plainRefused, type Place, seal } from './seal.ts'

const hasBody = 1

/** `fence`: of the grant it belongs to. Undefined: not known, because it is evidence. */
export function sealOutcome(
  ring: Keyring,
  { id, fence }: { readonly id: string; readonly fence: number | undefined },
  { status, version, headers, body }: Outcome,
): Outcome | Promise<Outcome> {
  const text = Buffer.from(JSON.stringify(headers))
  const head = Buffer.alloc(5)
  head[0] = body === undefined ? 0 : hasBody
  head.writeUInt32BE(text.length, 1)
  const bytes = body === undefined ? Buffer.concat([head, text]) : Buffer.concat([head, text, body])
  const outcomeOf = (sealed: Buffer): Outcome => ({ status, version, headers: sealedOutcomeHeaders, body: sealed })
  const sealed = seal(ring, placeOf(id), { bytes, binding: fence })
  return sealed instanceof Promise ? sealed.then(outcomeOf) : outcomeOf(sealed)
}

export interface OpenedOutcome {
  readonly kind: 'opened'
  readonly outcome: Outcome
  /** Of the grant whose owner wrote it, where it was one. */
  readonly fence: number | undefined
}

export async function openOutcome(ring: Keyring, id: string, outcome: Outcome): Promise<OpenedOutcome | NotOpened> {
  if (!isSealedOutcome(outcome))
    return ring.plainValues === 'read' ? { kind: 'opened', outcome, fence: undefined } : plainRefused(placeOf(id))
  const { status, version, body: sealed = new Uint8Array() } = outcome
  const opened = await open(ring, placeOf(id), sealed)
  if (opened.kind === 'unreadable') return opened
  const parts = partsOf(opened.bytes)
  if (parts === undefined) return notOpened('its outcome has a form that this version does not know')
  return { kind: 'opened', outcome: { status, version, ...parts }, fence: opened.binding }
}

/** Authenticated: only another version of Latchkey can have written another form. */
function partsOf(bytes: Buffer): Pick<Outcome, 'headers' | 'body'> | undefined {
  if (bytes.length < 5 || (bytes[0] ?? 0) > hasBody) return undefined
  const bodyAt = 5 + bytes.readUInt32BE(1)
  const headers = JSON.parse(bytes.toString('utf8', 5, bodyAt)) as readonly Header[]
  return { headers, body: bytes[0] === hasBody ? bytes.subarray(bodyAt) : undefined }
}

function placeOf(id: string): Place {
  return { identity: id, column: 'outcome' }
}
