/** Parked messages, with their headers and their payload sealed. Where they came from, their ids and their causes stay readable. */
import type { NewParkedInboxMessage, ParkedInbox, ParkedInboxMessage } from '../../ports/faculties/inbox.ts'
import { isSealedMessage, sealedMessageHeaders } from '../../ports/sealed-marks.ts'
import type { Keyring } from './keyring.ts'
import { type NotOpened, open, type Place, plainRefused, seal } from './seal.ts'

export function sealedInbox(inbox: ParkedInbox, ring: Keyring): ParkedInbox {
  return {
    park: async message => inbox.park({ ...message, ...(await sealParked(ring, message)) }),
    list: listing => inbox.list(listing),
    async inspect(id) {
      const { message, audit } = await inbox.inspect(id)
      return { message: message && (await openMessage(ring, message)), audit }
    },
    redrive: (id, act, as) => inbox.redrive(id, act, as),
    discard: (id, act) => inbox.discard(id, act),
    async take(which) {
      const taken = await inbox.take(which)
      return taken && { ...taken, message: await openMessage(ring, taken.message) }
    },
    renew: (taken, leaseMs) => inbox.renew(taken, leaseMs),
    settle: (taken, end) => inbox.settle(taken, end),
    waiting: () => inbox.waiting(),
  }
}

/** What is sealed of a parked message. */
type Contents = Pick<NewParkedInboxMessage, 'id' | 'headers' | 'payload'>

/** The headers stand before the payload, behind their length. */
export async function sealParked(ring: Keyring, { id, headers, payload }: Contents): Promise<Omit<Contents, 'id'>> {
  const text = Buffer.from(JSON.stringify(headers))
  const size = Buffer.alloc(4)
  size.writeUInt32BE(text.length)
  const sealed = await seal(ring, placeOf(id), { bytes: Buffer.concat([size, text, payload]) })
  return { headers: sealedMessageHeaders, payload: sealed }
}

export async function openParked(
  ring: Keyring,
  contents: Contents,
): Promise<(Omit<Contents, 'id'> & { readonly kind: 'opened' }) | NotOpened> {
  const { id, headers, payload } = contents
  const place = placeOf(id)
  if (!isSealedMessage(contents))
    return ring.plainValues === 'read' ? { kind: 'opened', headers, payload } : plainRefused(place)
  const opened = await open(ring, place, payload)
  if (opened.kind === 'unreadable') return opened
  const { bytes } = opened
  const payloadAt = 4 + bytes.readUInt32BE(0)
  // Written by `sealParked`.
  const parsed = JSON.parse(bytes.toString('utf8', 4, payloadAt)) as Record<string, string>
  return { kind: 'opened', headers: parsed, payload: bytes.subarray(payloadAt) }
}

/** A message that cannot be opened is given out as such: it is not run. */
async function openMessage(ring: Keyring, message: ParkedInboxMessage): Promise<ParkedInboxMessage> {
  const opened = await openParked(ring, message)
  if (opened.kind === 'unreadable')
    return { ...message, headers: {}, payload: new Uint8Array(), unreadable: opened.why }
  return { ...message, headers: opened.headers, payload: opened.payload }
}

function placeOf(id: string): Place {
  return { identity: id, column: 'parked' }
}
