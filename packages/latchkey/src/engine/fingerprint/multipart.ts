import { hash } from 'node:crypto'
import { frame } from './framing.ts'

// More than any form has; it bounds the work and the memory that a body of empty parts can cost.
const partsMax = 1000
const headBytesMax = 16 * 1024

/**
 * A multipart body by its parts in order: name, file name, type and the hash of the content. The boundary is omitted, because a
 * client makes a new one each time it encodes the same form. Undefined when the body is ambiguous.
 */
export function frameParts(mediaType: string, body: Uint8Array): Uint8Array | undefined {
  const boundary = readParameters(mediaType)?.get('boundary')
  // RFC 2046, section 5.1.1: 1 to 70 characters.
  if (boundary === undefined || boundary === '' || boundary.length > 70) return undefined
  const parts = splitParts(Buffer.from(body.buffer, body.byteOffset, body.byteLength), boundary)
  const framed = parts?.map(framePart)
  return framed === undefined || framed.includes(undefined) ? undefined : frame(framed)
}

function splitParts(body: Buffer, boundary: string): Buffer[] | undefined {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const opening = delimiter.subarray(2)
  const parts: Buffer[] = []
  // The first delimiter may be at the very beginning, without the line break before it.
  let at = body.subarray(0, opening.length).equals(opening) ? opening.length : after(body, delimiter, 0)
  while (at !== -1 && parts.length <= partsMax) {
    if (body.toString('latin1', at, at + 2) === '--') return parts
    const start = lineEnd(body, at)
    if (start === -1) return undefined
    // From the line break on, since a part without headers and content ends with the same one.
    const end = body.indexOf(delimiter, start - 2)
    if (end === -1) return undefined
    parts.push(body.subarray(start, Math.max(start, end)))
    at = end + delimiter.length
  }
  return undefined
}

function after(body: Buffer, delimiter: Buffer, from: number): number {
  const found = body.indexOf(delimiter, from)
  return found === -1 ? -1 : found + delimiter.length
}

/** Where the line after a delimiter starts; only padding may follow the delimiter (RFC 2046, section 5.1.1). */
function lineEnd(body: Buffer, from: number): number {
  let at = from
  while (body[at] === 0x20 || body[at] === 0x09) at++
  return body[at] === 0x0d && body[at + 1] === 0x0a ? at + 2 : -1
}

function framePart(part: Buffer): Uint8Array | undefined {
  const headEnd = part.subarray(0, headBytesMax).indexOf('\r\n\r\n')
  const headless = part.subarray(0, 2).toString('latin1') === '\r\n'
  if (headEnd === -1 && !headless) return undefined
  const headers = readHead(headless ? '' : part.toString('latin1', 0, headEnd))
  if (headers === undefined) return undefined
  const disposition = readParameters(headers.get('content-disposition') ?? '')
  if (disposition === undefined) return undefined
  const content = part.subarray(headless ? 2 : headEnd + 4)
  return frame([
    latin1(disposition.get('name')),
    latin1(disposition.get('filename')),
    latin1(disposition.get('filename*')),
    latin1(partType(headers.get('content-type'))),
    hash('sha256', content, 'buffer'),
  ])
}

function readHead(head: string): Map<string, string> | undefined {
  const headers = new Map<string, string>()
  for (const line of head === '' ? [] : head.split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    // A folded line, a line without a name and a name given twice can be read in two ways.
    if (colon < 1 || /\s/.test(name) || headers.has(name)) return undefined
    headers.set(name, line.slice(colon + 1).trim())
  }
  return headers
}

/** With its parameters, which say how to read the content; those of a nested multipart hold its boundary and are omitted. */
function partType(type: string | undefined): string | undefined {
  if (type === undefined || !/^multipart\//i.test(type)) return type
  return type.split(';', 1)[0]?.trimEnd().toLowerCase()
}

const parameter = /;[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))[ \t]*/y

/**
 * The parameters of a header value such as Content-Type or Content-Disposition, names in lower case, quoted values as
 * they stand between the quotes. Undefined when the value is not of that form or names a parameter twice.
 */
export function readParameters(value: string): Map<string, string> | undefined {
  const start = value.indexOf(';')
  const parameters = new Map<string, string>()
  if (start === -1) return parameters
  parameter.lastIndex = start
  while (parameter.lastIndex < value.length) {
    const match = parameter.exec(value)
    const name = match?.[1]?.toLowerCase()
    if (match === null || name === undefined || parameters.has(name)) return undefined
    parameters.set(name, match[2] ?? match[3] ?? '')
  }
  return parameters
}

function latin1(text: string | undefined): Uint8Array | undefined {
  return text === undefined ? undefined : Buffer.from(text, 'latin1')
}
