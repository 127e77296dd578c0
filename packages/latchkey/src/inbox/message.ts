/** A message as it is handed in, and what is read of it: its key, its fingerprint, and the copy that is parked. */
import { hash } from 'node:crypto'
import { lengthPrefixed } from '../engine/request.ts'
import { uuidOfHex } from '../ports/clock.ts'
import { isError, misconfigured } from '../ports/errors.ts'
import type { NewParkedInboxMessage, ParkedInboxMessage } from '../ports/faculties/inbox.ts'
import { jsonBytesOf, withJsonBytes } from './json-bytes.ts'

export interface InboxMessage<Data = unknown> {
  /** Where its id is unique: the `source` of CloudEvents, else the topic, stream, exchange or queue that it came from. */
  readonly source: string
  /** Given by its producer, and the same however often it is sent and delivered. Without one it is parked as `missing-key`. */
  readonly id?: string | undefined
  readonly type?: string | undefined
  /** Default: `application/json` for JSON, none for bytes. */
  readonly contentType?: string | undefined
  /** Bytes (`Uint8Array`), or JSON. */
  readonly data: Data
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Where the broker has it, such as `orders/3/1042`. Shown to operators, and tells two messages without an id apart. Never its identity. */
  readonly position?: string | undefined
}

/** What is read of a message. All of its texts can be stored as they are. */
export interface ReadMessage {
  /** As the handler gets it. */
  readonly given: InboxMessage
  readonly source: string
  readonly id: string | undefined
  readonly type: string | undefined
  readonly contentType: string | undefined
  readonly position: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly form: 'json' | 'bytes'
  readonly payload: Uint8Array
  /** Undefined: it has no id that could be used. */
  readonly key: string | undefined
}

/** `owner`: names the inbox in errors. */
export function readMessage(owner: string, given: InboxMessage): ReadMessage {
  const { form, payload } = contentOf(owner, given)
  const { source, id, headers = {} } = given
  return {
    given,
    source: storable(String(source)),
    id: typeof id === 'string' && id !== '' ? storable(id) : undefined,
    type: given.type === undefined ? undefined : storable(given.type),
    contentType: given.contentType === undefined ? undefined : storable(given.contentType),
    position: given.position === undefined ? undefined : storable(given.position),
    headers: named(headers),
    form,
    payload,
    key: isUsable(source) && isUsable(id) ? lengthPrefixed([source, id]) : undefined,
  }
}

function contentOf(owner: string, given: InboxMessage): Pick<ReadMessage, 'form' | 'payload'> {
  const { data } = given
  if (data instanceof Uint8Array) return { form: 'bytes', payload: data }
  return { form: 'json', payload: jsonBytesOf(given) ?? Buffer.from(jsonOf(owner, data)) }
}

function jsonOf(owner: string, data: unknown): string {
  const must = `${owner}: the data of a message must be bytes or JSON`
  let text: string | undefined
  try {
    text = JSON.stringify(data)
  } catch (error) {
    throw misconfigured(`${must} (JSON.stringify: ${isError(error) ? error.message : 'it threw'})`)
  }
  if (text === undefined) throw misconfigured(`${must} (got ${typeof data})`)
  return text
}

/** A header without a name marks what is encrypted. */
function named(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (!Object.hasOwn(headers, '')) return headers
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== ''))
}

/** Text that a store would change could make one key of two. */
function isUsable(text: unknown): text is string {
  return typeof text === 'string' && text !== '' && storable(text) === text
}

const plainText = /^[\x01-\x7f]*$/

/** No store has U+0000 or half of a surrogate pair in its text. */
function storable(text: string): string {
  return plainText.test(text) ? text : text.replace(/[\0\p{Surrogate}]/gu, '\uFFFD')
}

export function mediaTypeOf({ contentType, form }: Pick<ReadMessage, 'contentType' | 'form'>): string | undefined {
  return contentType ?? (form === 'json' ? 'application/json' : undefined)
}

/** What a parked copy has beside the message. */
export type ParkedAs = Pick<NewParkedInboxMessage, 'consumer' | 'operation' | 'cause' | 'rowId' | 'attempts'>

export function parkedCopy(message: ReadMessage, as: ParkedAs): NewParkedInboxMessage {
  const { source, id, type, contentType, position, headers, form, payload } = message
  return {
    ...as,
    id: parkedId(message, as),
    ...{ source, messageId: id, type, contentType, position, headers: { ...headers }, form, payload },
  }
}

/**
 * The same for every delivery of a message. Its contents count as well, because two messages may have one id; its position counts where it has no id,
 * because without it two equal messages could not be distinguished.
 */
function parkedId(message: ReadMessage, { consumer, operation }: ParkedAs): string {
  const { source, id, type = '', contentType = '', position = '', form, payload, key } = message
  const place = key === undefined ? position : ''
  const digest = hash('sha256', payload, 'hex')
  const parts = ['latchkey.parked.v1', consumer, operation, source, id ?? '', type, contentType, place, form, digest]
  return uuidOfHex(hash('sha256', lengthPrefixed(parts), 'hex'))
}

/** The message that a copy was made of, under the id that it is to run with. */
export function messageOf({ redrive, messageId, ...copy }: ParkedInboxMessage): InboxMessage {
  const { source, type, contentType, position, headers, form, payload } = copy
  const rest = { source, id: redrive?.as ?? messageId, type, contentType, position, headers }
  if (form === 'bytes') return { ...rest, data: payload }
  const data: unknown = JSON.parse(new TextDecoder().decode(payload))
  return withJsonBytes({ ...rest, data }, payload)
}
