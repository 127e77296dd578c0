/** A Node request as the exchange wants to see it. */
import type { BodyRead, RequestView } from '../exchange/request-view.ts'
import type { NodeRequest } from './node-types.ts'

/** What of a request says which one it is. */
export type NodeRequestHead = Pick<NodeRequest, 'method' | 'url' | 'originalUrl' | 'rawHeaders'>

export function nodeView<Context>(
  req: NodeRequestHead,
  context: Context,
  body: () => Promise<BodyRead>,
): RequestView<Context> {
  // Before a router cut its mount path off: the same operation may be mounted in two places.
  const target = req.originalUrl ?? req.url ?? '/'
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

/** From the raw list, because the parsed one joins or drops repeated fields. */
function rawHeader(raw: readonly string[], name: string): string[] {
  const lower = name.toLowerCase()
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === lower)
}
