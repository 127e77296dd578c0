/** The operators' console beside the shop, for the person who started the playground. */
import type { Hono } from 'hono'
import { type LoopbackConsole, loopbackConsole } from '@latchkey/console'
import type { AdminHost } from 'latchkey/admin'
import type { Env } from '../api.ts'

export interface Operators {
  mount<Tx>(app: Hono<Env>, latchkey: AdminHost<Tx>): void
  /** A sentence for the person, when the server listens. */
  told(): string
}

/** One person plays both parts here: nobody else could approve what they propose. */
const approvals = { 'settle.did_not_happen': 'never', forget: 'never' } as const

export function openOperators(url: () => string): Operators {
  let opened: LoopbackConsole | undefined
  let why = ''
  return {
    mount(app, latchkey) {
      try {
        opened = loopbackConsole({
          latchkey,
          person: { name: 'you', role: 'approver' },
          host: () => new URL(url()).host,
          environment: 'playground',
          approvals,
        })
      } catch (error) {
        why = error instanceof Error ? error.message : String(error)
        return
      }
      const { handler } = opened
      app.all('/console', c => handler(c.req.raw))
      app.all('/console/*', c => handler(c.req.raw))
    },
    told: () =>
      opened === undefined
        ? `The operators' console is left out: ${why}`
        : `The operators' console, with a link for one browser, once: ${url()}/console/${opened.query}`,
  }
}
