/** The body of an outcome inside of a JSON document. */
import type { Outcome } from '../../../ports/outcome.ts'

export type ReadableBody =
  /** JSON as what it says, text as text, nothing as null. */
  | { readonly body: unknown }
  | { readonly body: string; readonly encoding: 'base64' }
  /** It was over the cap. */
  | { readonly body: null; readonly encoding: 'not-stored' }

export function readableBody({ headers, body }: Pick<Outcome, 'headers' | 'body'>): ReadableBody {
  if (body === undefined) return { body: null, encoding: 'not-stored' }
  if (body.byteLength === 0) return { body: null }
  const valueOf = (lower: string) => headers.find(([name]) => name.toLowerCase() === lower)?.[1]
  const coded = valueOf('content-encoding') !== undefined
  const text = coded ? undefined : textOf(valueOf('content-type') ?? '', body)
  return text ?? { body: Buffer.from(body).toString('base64'), encoding: 'base64' }
}

/** Undefined where the bytes are not what their type says: then they travel as bytes. */
function textOf(contentType: string, body: Uint8Array): { body: unknown } | undefined {
  const [essence = '', ...parameters] = contentType.toLowerCase().split(';')
  const type = essence.trim()
  const isJson = type === 'application/json' || type.endsWith('+json')
  if (!isJson && !type.startsWith('text/')) return undefined
  const charset = parameters.map(one => /^ *charset *= *"?([^"]+)"?/.exec(one)?.[1]?.trim()).find(Boolean)
  try {
    const text = new TextDecoder(isJson ? 'utf-8' : (charset ?? 'utf-8'), { fatal: true }).decode(body)
    return { body: isJson ? JSON.parse(text) : text }
  } catch {
    return undefined
  }
}
