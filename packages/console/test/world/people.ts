/** Who looks at the console in the tests: a cookie names them, as a session of the host application would. */
import type { BrowserContext } from 'playwright-core'
import type { Person } from 'latchkey/admin'

export const people = {
  viewer: { name: 'support@shop.example', role: 'viewer' },
  operator: { name: 'on-call@shop.example', role: 'operator' },
  approver: { name: 'lead@shop.example', role: 'approver' },
  secondApprover: { name: 'deputy@shop.example', role: 'approver' },
} as const satisfies Readonly<Record<string, Person>>

export type Name = keyof typeof people

export function authorize(request: Request): Person | null {
  const name = /\bperson=(\w+)/.exec(request.headers.get('cookie') ?? '')?.[1]
  return Object.entries(people).find(([each]) => each === name)?.[1] ?? null
}

export async function signIn(context: BrowserContext, url: string, name: Name): Promise<void> {
  await context.addCookies([
    { name: 'person', value: name, url: new URL('/', url).href, httpOnly: true, sameSite: 'Strict' },
  ])
}
