/** The address after the `#`: no server has to know it, so the page works below any path. */
import { useEffect, useState } from 'preact/hooks'

export interface Route {
  readonly screen: string
  /** The row's id, on the screen of a key. */
  readonly id: string
  readonly query: URLSearchParams
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [screen = '', id = ''] = path.split('/').map(decode)
  return { screen, id, query: new URLSearchParams(query) }
}

/** An address that somebody typed may be no valid escape. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export function hrefOf(screen: string, id = '', query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const path = id === '' ? `#/${screen}` : `#/${screen}/${encodeURIComponent(id)}`
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

export function goTo(href: string): void {
  location.hash = href
}

/** Without an entry in the history: a filter is no place to go back to. */
export function replaceRoute(href: string): void {
  history.replaceState(null, '', href)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const onChange = () => setHash(location.hash)
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return parseRoute(hash)
}
