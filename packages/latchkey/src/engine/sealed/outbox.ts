/** The outbox, with everything but topic and dedup id sealed. An aggregate is a keyed hash, so that its order stays. */
import { type Batch, checkMessage, type Message, type NewMessage, type Outbox } from '../../ports/outbox.ts'
import { isSealedMessage, sealedMessageHeaders } from '../../ports/sealed-marks.ts'
import type { Keyring } from './keyring.ts'
import { open, openText, plainRefused, type Place, seal, sealText } from './seal.ts'

export function sealedOutbox<Tx>(outbox: Outbox<Tx>, ring: Keyring): Outbox<Tx> {
  const openAll = <M extends Message>(messages: readonly M[]) =>
    Promise.all(messages.map(message => openMessage(ring, message)))
  const openBatch = async (batch: Batch): Promise<Batch> => ({ ...batch, messages: await openAll(batch.messages) })
  const { ahead } = outbox
  const readingAhead: Pick<Outbox<Tx>, 'ahead'> = ahead === undefined
    ? {}
    : {
        async ahead(lease, options) {
          const batch = await ahead.call(outbox, lease, options)
          return batch && openBatch(batch)
        },
      }
  return {
    lanes: outbox.lanes,
    append: async (tx, message) => outbox.append(tx, await sealMessage(ring, message)),
    leaseLane: options => outbox.leaseLane(options),
    renewLane: (lease, leaseMs) => outbox.renewLane(lease, leaseMs),
    releaseLane: lease => outbox.releaseLane(lease),
    async next(lease, options) {
      const batch = await outbox.next(lease, options)
      return batch === 'lease-lost' ? batch : openBatch(batch)
    },
    ...readingAhead,
    async settle(lease, settlement) {
      const ends = await Promise.all(
        settlement.ends.map(async end => {
          if (end.kind === 'failed' || end.downstreamId === undefined) return end
          return { ...end, downstreamId: await sealText(ring, ofPosition(end.position), end.downstreamId) }
        }),
      )
      return outbox.settle(lease, { ...settlement, ends })
    },
    parked: async options => openAll(await outbox.parked(options)),
    redrive: (position, act) => outbox.redrive(position, act),
    redrives: position => outbox.redrives(position),
    async downstreamId(position) {
      const stored = await outbox.downstreamId(position)
      if (stored === undefined) return undefined
      const opened = await openText(ring, ofPosition(position), stored)
      return opened.kind === 'opened' ? opened.text : undefined
    },
    prune: options => outbox.prune(options),
    lag: () => outbox.lag(),
  }
}

/** What is read of a message only by its target. */
interface Contents {
  readonly aggregate: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

export async function sealMessage<M extends NewMessage>(ring: Keyring, message: M): Promise<M> {
  checkMessage(message)
  const { aggregate, headers, payload } = message
  const contents: Contents = { aggregate, headers }
  const text = Buffer.from(JSON.stringify(contents))
  const size = Buffer.alloc(4)
  size.writeUInt32BE(text.length)
  const sealed = await seal(ring, placeOf(message), { bytes: Buffer.concat([size, text, payload]) })
  return {
    ...message,
    aggregate: aggregate === undefined ? undefined : ring.indexOf('aggregate', aggregate),
    headers: sealedMessageHeaders,
    payload: sealed,
  }
}

/** A message that cannot be opened is given out as such: the relay parks it, and the others are delivered. */
export async function openMessage<M extends Message>(ring: Keyring, message: M): Promise<M> {
  const place = placeOf(message)
  if (!isSealedMessage(message)) return ring.plainValues === 'read' ? message : closed(message, plainRefused(place).why)
  const opened = await open(ring, place, message.payload)
  if (opened.kind === 'unreadable') return closed(message, opened.why)
  const { bytes } = opened
  const payloadAt = 4 + bytes.readUInt32BE(0)
  const { aggregate, headers } = JSON.parse(bytes.toString('utf8', 4, payloadAt)) as Contents
  return { ...message, aggregate, headers, payload: bytes.subarray(payloadAt) }
}

function closed<M extends Message>(message: M, why: string): M {
  return { ...message, headers: {}, payload: new Uint8Array(), unreadable: why }
}

function placeOf({ topic, dedupId }: Pick<NewMessage, 'topic' | 'dedupId'>): Place {
  return { identity: `${topic.length}:${topic}${dedupId}`, column: 'message' }
}

function ofPosition(position: string): Place {
  return { identity: `position:${position}`, column: 'downstream-id' }
}
