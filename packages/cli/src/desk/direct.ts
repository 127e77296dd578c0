/** Straight at the store: whoever has its password may do everything, and the audit says who it was. */
import { hostname, userInfo } from 'node:os'
import { type Admin, createAdmin, type Person } from 'latchkey/admin'
import type { Host } from './application.ts'
import type { Desk } from './desk.ts'

export function personHere(): Person {
  return { name: `os:${userInfo().username}@${hostname()}`, role: 'approver' }
}

export function directDesk(latchkey: Host, as: string): Desk {
  const admin = createAdmin({ latchkey })
  const by = { who: personHere(), source: 'cli' as const }
  const calls = Object.entries(admin).map(([name, call]) => [
    name,
    // Every call takes the person first.
    async (...given: unknown[]) => (call as (...all: unknown[]) => unknown).call(admin, by, ...given),
  ])
  const noActs = admin.session(by).missing.includes('admin') ? { noActs: withoutTables } : {}
  // The calls of `Admin`, each with its person.
  return { ...(Object.fromEntries(calls) as Omit<Desk, 'as'> & Partial<Admin>), as, ...noActs } as Desk
}

const withoutTables =
  'this store has no operators’ tables, so its rows cannot be changed from here. Settle a row in your application, with latchkey.settle, or use PostgreSQL or SQLite'
