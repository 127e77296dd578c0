import type { Http1Response, Listener } from './driver.ts'

export function takeListeners(res: Http1Response, event: string): readonly Listener[] {
  const listeners = res.rawListeners(event) as Listener[] // Node types them as any function
  for (const listener of listeners) res.removeListener(event, listener)
  return listeners
}
