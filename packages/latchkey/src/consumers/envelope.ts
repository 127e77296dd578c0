/** What a delivery of any broker becomes: a message with the identity that its producer gave it. */
import type { InboxMessage } from '../inbox/index.ts'
import { withJsonBytes } from '../inbox/json-bytes.ts'

/** A delivery as its broker has it. */
export interface Envelope {
  /** The first value of a header, whatever its case. */
  readonly header: (name: string) => string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
  /** Without CloudEvents: where the broker's own message id is unique, that id, and what kind of message it is. */
  readonly source: string
  readonly id: string | undefined
  readonly type: string | undefined
  readonly contentType: string | undefined
  /** Where the broker has it. Never the same for a message that is sent twice. Undefined: the broker knows no positions. */
  readonly position: string | undefined
}

export interface EnvelopeOptions {
  /**
   * What makes two deliveries the same message. `message` (default): the `source` and `id` of CloudEvents, else the producer's message id. `position`: where
   * the broker has it, for producers that set no id; a message that is sent twice then runs twice.
   */
  readonly identity?: 'message' | 'position'
  /** Of messages that name no content type. Default: none, and their data are bytes. With `application/json`, data are parsed. */
  readonly contentType?: string
}

/** As they were read from the options of a consumer. */
export type GivenEnvelopeOptions = { readonly [Name in keyof EnvelopeOptions]: EnvelopeOptions[Name] | undefined }

export function messageOf(
  envelope: Envelope,
  { identity = 'message', contentType }: GivenEnvelopeOptions,
): InboxMessage {
  const { headers, position } = envelope
  const found = structuredEvent(envelope) ?? binaryEvent(envelope, contentType)
  const id = identity === 'position' ? { source: envelope.source, id: position } : idOf(found, envelope)
  const message = {
    ...id,
    type: found.type ?? envelope.type,
    contentType: found.contentType,
    data: found.data,
    headers,
    position,
  }
  return found.json === undefined ? message : withJsonBytes(message, found.json)
}

interface Content {
  readonly source: string | undefined
  readonly id: string | undefined
  readonly type: string | undefined
  readonly contentType: string | undefined
  readonly data: unknown
  /** What the data are parsed from. Undefined: they are bytes. */
  readonly json: Uint8Array | undefined
}

/** Both of CloudEvents, or neither: an id is unique within its source only. */
function idOf({ source, id }: Content, envelope: Envelope): Pick<InboxMessage, 'source' | 'id'> {
  if (source !== undefined && id !== undefined) return { source, id }
  return { source: envelope.source, id: envelope.id }
}

const structuredType = 'application/cloudevents+json'

/** CloudEvents, structured: the event is the body. What is not one in spite of its content type is read as any other. */
function structuredEvent({ contentType, bytes }: Envelope): Content | undefined {
  if (!isType(contentType, structuredType)) return undefined
  const event = parsed(bytes)
  if (typeof event !== 'object' || event === null) return undefined
  const text = (name: string): string | undefined => {
    const value: unknown = Reflect.get(event, name)
    return typeof value === 'string' ? value : undefined
  }
  const content = contentOf(event, text('data_base64'))
  return (
    content && {
      source: text('source'),
      id: text('id'),
      type: text('type'),
      contentType: text('datacontenttype'),
      ...content,
    }
  )
}

/** Undefined: data that are nested too deep to be written down without what is around them. */
function contentOf(event: object, inBase64: string | undefined): Pick<Content, 'data' | 'json'> | undefined {
  if (inBase64 !== undefined) return { data: Buffer.from(inBase64, 'base64'), json: undefined }
  const data: unknown = Reflect.get(event, 'data') ?? null
  try {
    return { data, json: Buffer.from(JSON.stringify(data)) }
  } catch {
    return undefined
  }
}

/** CloudEvents, binary: attributes are headers. Also of a message that is no event. */
function binaryEvent({ header, contentType: named, bytes }: Envelope, otherwise: string | undefined): Content {
  const contentType = named ?? otherwise
  const value = isJson(contentType) ? parsed(bytes) : undefined
  return {
    source: header('ce-source'),
    id: header('ce-id'),
    type: header('ce-type'),
    contentType,
    // What is not JSON in spite of its content type is for the handler to refuse.
    data: value === undefined ? bytes : value,
    json: value === undefined ? undefined : bytes,
  }
}

function isType(contentType: string | undefined, type: string): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === type
}

function isJson(contentType: string | undefined): boolean {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return type === 'application/json' || type.endsWith('+json')
}

/** One for all: what it does not stream it does not remember. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    return undefined
  }
}
