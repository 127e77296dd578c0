/** The console beside its API: static files, by addresses that are relative to the mount, whatever that is. */
import { securityHeaders } from './guard.ts'

/** The files of the page, as `consoleFiles()` of `@latchkey/console` gives them. */
export interface ConsoleFiles {
  /** `index.html`, or `assets/…`. Undefined: there is no such file. */
  read(path: string): { readonly bytes: Uint8Array; readonly type: string } | undefined
}

/** The names of assets contain a digest of their content. A shared cache must not hand them to who is not signed in. */
const forGood = 'private, max-age=31536000, immutable'

/** Undefined: it is no address of the page. */
export function pageResponse(files: ConsoleFiles, { method, url }: Request): Response | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined
  const { pathname, search } = new URL(url)
  const asset = /\/(assets\/[^/]+)$/.exec(pathname)?.[1]
  const isPage = pathname.endsWith('/')
  if (asset === undefined && !isPage) return toSlash(pathname, search)
  const file = files.read(asset ?? 'index.html')
  if (file === undefined) return undefined
  const headers = { ...securityHeaders, 'content-type': file.type }
  const kept = asset === undefined ? headers : { ...headers, 'cache-control': forGood }
  return new Response(method === 'HEAD' ? null : new Uint8Array(file.bytes), { headers: kept })
}

/** Relative: a proxy that has cut off or added a part of the path need not be known. */
function toSlash(pathname: string, search: string): Response {
  const last = pathname.slice(pathname.lastIndexOf('/') + 1)
  // `./` in front: a name with a colon would be read as another scheme.
  return new Response(null, { status: 307, headers: { ...securityHeaders, location: `./${last}/${search}` } })
}
