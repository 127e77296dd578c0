/** The shop, its admin routes with the built page, and a browser that looks at them. */
import { createServer, type Server } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { BrowserContext, Page } from 'playwright-core'
import { type AdminHost, adminRoutes, nodeAdmin } from 'latchkey/admin'
import type { Chromium } from '../../../../test/servers/browser/chromium.ts'
import { buildPage } from '../../build-page.ts'
import { consoleFiles } from '../../src/index.ts'
import { authorize, type Name, signIn } from './people.ts'
import { openShop, quarantineMs, type Shop } from './shop.ts'

export interface World {
  readonly shop: Shop
  /** Where the console is mounted; ends with a slash. */
  readonly url: string
  /** A window of a person, on a screen. */
  visit(browser: Chromium, name: Name, screen: string, options?: VisitOptions): Promise<Page>
  close(): Promise<void>
}

export interface VisitOptions {
  readonly colorScheme?: 'light' | 'dark'
  /** Its time passes when the test says so. */
  readonly hasOwnClock?: boolean
}

export interface WorldOptions {
  readonly prefix?: string
  readonly environment?: string
}

/** The shop, with a console on it. */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-console-'))
  const shop = await openShop(directory)
  const served = await serveConsole(shop.latchkey, { ...options, quarantineMs: () => quarantineMs })
  return {
    ...served,
    shop,
    async close() {
      await served.close()
      await shop.close()
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

interface ServeOptions extends WorldOptions {
  readonly quarantineMs?: (operation: string) => number | undefined
}

/** The console of any Latchkey, below its prefix and nowhere else. */
export async function serveConsole<Tx>(
  latchkey: AdminHost<Tx>,
  { prefix = '/admin', environment = 'test', ...options }: ServeOptions = {},
): Promise<Omit<World, 'shop'>> {
  const page = mkdtempSync(join(tmpdir(), 'latchkey-console-page-'))
  await buildPage(page)
  const server = createServer()
  const port = await listen(server)
  const routes = nodeAdmin(
    adminRoutes({
      ...{ latchkey, authorize, environment, hosts: [`127.0.0.1:${port}`] },
      ...options,
      console: consoleFiles(pathToFileURL(`${page}/`)),
    }),
  )
  server.on('request', (req, res) => {
    if (req.url?.startsWith(prefix) === true) routes(req, res)
    else res.writeHead(404).end()
  })
  const url = `http://127.0.0.1:${port}${prefix}/`
  const contexts: BrowserContext[] = []
  return {
    url,
    async visit(browser, name, screen, { hasOwnClock = false, ...options } = {}) {
      const context = await browser.open(options)
      contexts.push(context)
      await signIn(context, url, name)
      const opened = await context.newPage()
      if (hasOwnClock) await opened.clock.install()
      await opened.goto(`${url}#/${screen}`)
      await opened.locator('main h1').waitFor()
      return opened
    },
    async close() {
      for (const context of contexts) await context.close()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      rmSync(page, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function listen(server: Server): Promise<number> {
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}
