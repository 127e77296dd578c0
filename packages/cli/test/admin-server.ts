/** An admin API on a port of its own, with a token for each person. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { adminRoutes, type AdminOptions, type AdminRoutesOptions, nodeAdmin, type Person } from 'latchkey/admin'
import type { Shop } from './shop.ts'

export interface AdminServer {
  readonly url: string
  /** Settings for a call in the name of this person. */
  env(name: string): Readonly<Record<string, string>>
  close(): Promise<void>
}

export async function startAdmin(
  { latchkey }: Pick<Shop, 'latchkey'>,
  people: Readonly<Record<string, Person['role']>>,
  options: AdminOptions & Partial<Pick<AdminRoutesOptions<never>, 'authorize'>> = {},
): Promise<AdminServer> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const routes = adminRoutes({
    latchkey,
    hosts: [`127.0.0.1:${port}`],
    authorize(request) {
      const name = /^Bearer token-of-(\w+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
      const role = name === undefined ? undefined : people[name]
      return name === undefined || role === undefined ? null : { name, role }
    },
    ...options,
  })
  const handle = nodeAdmin(routes)
  server.on('request', handle)
  const url = `http://127.0.0.1:${port}/ops`
  return {
    url,
    env: name => ({ LATCHKEY_SERVER: url, LATCHKEY_TOKEN: `token-of-${name}` }),
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
}
