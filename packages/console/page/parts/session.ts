/** Who looks, and what they may do. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Right, Session } from 'latchkey/admin'

export const SessionContext = createContext<Session | undefined>(undefined)

export function useSession(): { readonly name: string; may(right: Right): boolean } {
  const session = useContext(SessionContext)
  return { name: session?.name ?? '', may: right => session?.rights.includes(right) ?? false }
}
