/** The shop, its admin routes with the built page, and a browser that looks at them. */
import { createServer, type Server } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { BrowserContext, Page } from 'playwright-core'
import { adminRoutes, nodeAdmin } from 'latchkey/admin'
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
}

export interface WorldOptions {
  readonly prefix?: string
  readonly environment?: string
}

export async function openWorld({ prefix = '/admin', environment = 'test' }: WorldOptions = {}): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-console-'))
  const page = join(directory, 'page')
  await buildPage(page)
  const shop = await openShop(directory)
  const server = createServer()
  const port = await listen(server)
  const routes = adminRoutes({
    latchkey: shop.latchkey,
    authorize,
    hosts: [`127.0.0.1:${port}`],
    environment,
    quarantineMs: () => quarantineMs,
    console: consoleFiles(pathToFileURL(`${page}/`)),
  })
  server.on('request', nodeAdmin(routes))
  const url = `http://127.0.0.1:${port}${prefix}/`
  const contexts: BrowserContext[] = []
  return {
    shop,
    url,
    async visit(browser, name, screen, options = {}) {
      const context = await browser.open(options)
      contexts.push(context)
      await signIn(context, url, name)
      const opened = await context.newPage()
      await opened.goto(`${url}#/${screen}`)
      await opened.locator('main h1').waitFor()
      return opened
    },
    async close() {
      for (const context of contexts) await context.close()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      await shop.close()
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
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
