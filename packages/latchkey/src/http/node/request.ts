/** Presents a Node request to the exchange. */
import type { RequestView } from '../exchange/request.ts'
import type { NodeRequest } from './driver.ts'

/** The parts of a request that identify it. */
export type NodeRequestHead = Pick<NodeRequest, 'method' | 'url' | 'originalUrl' | 'rawHeaders'>

export function nodeView<Context>(
  req: NodeRequestHead,
  context: Context,
  body: RequestView<Context>['body'],
): RequestView<Context> {
  // With the mount path that routers remove: the same operation may be mounted in two places.
  const target = originForm(req.originalUrl ?? req.url ?? '/')
  const mark = target.indexOf('?')
  return {
    context,
    method: req.method ?? 'GET',
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? '' : target.slice(mark + 1),
    header: name => rawHeader(req.rawHeaders, name),
    body,
  }
}

/** A proxy may send the absolute form (RFC 9112, section 3.2.2) with one request and the usual form with its retry. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  const authority = /^https?:\/\/[^/?]*/i.exec(target)?.[0]
  if (authority === undefined) return target
  const rest = target.slice(authority.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** From the raw list, because the parsed list joins or drops repeated fields. */
function rawHeader(raw: readonly string[], name: string): string[] {
  const lower = name.toLowerCase()
  const lines: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const field = raw[at] ?? ''
    if (field.length === lower.length && field.toLowerCase() === lower) lines.push(raw[at + 1] ?? '')
  }
  return lines
}
