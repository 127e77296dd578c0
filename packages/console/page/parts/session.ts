/** Who looks, and what they may do. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Right, Session } from 'latchkey/admin'

export const SessionContext = createContext<Session | undefined>(undefined)

export interface Asking {
  readonly name: string
  may(right: Right): boolean
  /** Whether the store is without this faculty. */
  lacks(faculty: string): boolean
}

export function useSession(): Asking {
  const session = useContext(SessionContext)
  return {
    name: session?.name ?? '',
    may: right => session?.rights.includes(right) ?? false,
    lacks: faculty => session?.missing.includes(faculty) ?? false,
  }
}
