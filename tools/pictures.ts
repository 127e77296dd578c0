// npm run pictures              a picture of every screen of the console, in both themes, in docs/pictures/generated (which is not committed)
// npm run pictures -- --readme  also the two that the README shows, in docs/pictures
//
// The pictures are of a real shop on SQLite with real rows, and need Chromium.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { fillShop } from '../packages/console/test/world/filled.ts'
import { openWorld } from '../packages/console/test/world/world.ts'
import { startChromium } from '../test/servers/browser/chromium.ts'

const SCREENS = ['now', 'unknown', 'parked', 'outbox', 'proposals', 'find', 'operations', 'workers', 'audit']
const README = ['unknown', 'key']
/** Workers report every ten seconds. */
const REPORTED_WITHIN_MS = 30_000

const TEXTS = {
  scope: 'acct 118',
  description: '€ 50.00 top-up',
  order: 'A-1042',
  reason: 'the provider has no such charge in its dashboard',
  ticket: '4711',
}

const { values } = parseArgs({ options: { readme: { type: 'boolean', default: false } } })
const pictures = fileURLToPath(new URL('../docs/pictures', import.meta.url))
mkdirSync(join(pictures, 'generated'), { recursive: true })

const browser = await startChromium()
const world = await openWorld({ environment: 'production' })
try {
  const { unknown } = await fillShop(world, TEXTS)
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await world.visit(browser, 'approver', 'workers', { colorScheme })
    const turned = page.getByRole('row', { name: /^sweeper .* ago .* ago/ })
    await turned.waitFor({ timeout: REPORTED_WITHIN_MS })
    for (const screen of [...SCREENS, `key/${unknown}`]) {
      const [name = ''] = screen.split('/')
      await page.goto(`${world.url}#/${screen}`)
      await page.locator('main').locator('.empty, tbody tr, .tiles, .columns').first().waitFor()
      // The last request of the screen, and its chart.
      await page.waitForTimeout(1_000)
      await page.screenshot({ path: join(pictures, 'generated', `${name}-${colorScheme}.png`), fullPage: true })
      if (values.readme && colorScheme === 'light' && README.includes(name))
        await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
      console.log(`${name} ${colorScheme}`)
    }
  }
} finally {
  await world.close()
  await browser.stop()
}
