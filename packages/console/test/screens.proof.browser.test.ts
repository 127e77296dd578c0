import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser } from '../../../test/servers/browser/describe-browser.ts'
import { fillShop, hostile } from './world/filled.ts'
import { openWorld, type World } from './world/world.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const screens = ['now', 'unknown', 'parked', 'outbox', 'proposals', 'find', 'operations', 'workers', 'audit']
const schemes = ['light', 'dark'] as const

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** In the page's own world, where its content security policy does not hold the test back. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  const found = await page.evaluate(
    async tags => (await (globalThis as unknown as Axe).axe.run({ runOnly: tags })).violations,
    rules,
  )
  return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
}

interface Axe {
  readonly axe: {
    run(options: { runOnly: string[] }): Promise<{ readonly violations: readonly Violation[] }>
  }
}

/** Its content is there, not only its heading. */
async function calm(page: Page): Promise<void> {
  await page.locator('main h1').waitFor()
  const content = page.locator('main').locator('.empty, tbody tr, .tiles, .columns, .note')
  await content.first().waitFor()
}

describeBrowser('every screen', own => {
  let empty: World
  let filled: World
  let ids: { readonly unknown: string; readonly completed: string }
  beforeAll(async () => {
    empty = await openWorld()
    filled = await openWorld()
    empty.shop.workers.start()
    ids = await fillShop(filled)
  })
  afterAll(async () => {
    await empty?.close()
    await filled?.close()
  })

  it.each(schemes)('is accessible when it is empty, in the %s theme', { timeout: 180_000 }, async colorScheme => {
    const page = await empty.visit(own.server, 'approver', 'now', { colorScheme })
    const faults: string[] = []
    for (const screen of screens) {
      await page.goto(`${empty.url}#/${screen}`)
      await calm(page)
      faults.push(...(await violations(page)).map(fault => `${screen}: ${fault}`))
    }
    expect(faults).toEqual([])
  })

  it.each(schemes)('is accessible when it is full, in the %s theme', { timeout: 180_000 }, async colorScheme => {
    const page = await filled.visit(own.server, 'approver', 'now', { colorScheme })
    const faults: string[] = []
    for (const screen of [...screens, `key/${ids.unknown}`, `key/${ids.completed}`]) {
      await page.goto(`${filled.url}#/${screen}`)
      await calm(page)
      faults.push(...(await violations(page)).map(fault => `${screen}: ${fault}`))
    }
    for (const button of ['Look up all…', 'Import provider export…']) {
      await page.goto(`${filled.url}#/unknown`)
      await page.getByRole('button', { name: button }).first().click()
      faults.push(...(await violations(page)).map(fault => `${button} ${fault}`))
      await page.keyboard.press('Escape')
    }
    expect(faults).toEqual([])
  })

  it('shows hostile text as text, in every field that has some', { timeout: 120_000 }, async () => {
    const page = await filled.visit(own.server, 'approver', 'now')
    const alarms: string[] = []
    page.on('dialog', dialog => {
      alarms.push(dialog.message())
      void dialog.dismiss()
    })
    page.on('pageerror', error => alarms.push(error.message))
    page.on('console', message => {
      if (/Content Security Policy|Refused to/.test(message.text())) alarms.push(message.text())
    })
    const showing = ['unknown', 'proposals', 'audit', `key/${ids.unknown}`]
    for (const screen of [...screens, ...showing]) {
      await page.goto(`${filled.url}#/${screen}`)
      await calm(page)
      if (showing.includes(screen)) await page.getByText(hostile).first().waitFor()
      expect(await page.locator('main img, main script, main iframe, main svg').count(), screen).toBe(0)
      expect(await page.evaluate(() => Reflect.get(globalThis, 'pwned')), screen).toBeUndefined()
    }
    expect(alarms).toEqual([])
  })

  it('needs no scrolling to the side at 320 pixels, which is a zoom of 400 %', { timeout: 120_000 }, async () => {
    const page = await filled.visit(own.server, 'approver', 'now')
    await page.setViewportSize({ width: 320, height: 640 })
    const wide: string[] = []
    for (const screen of [...screens, `key/${ids.unknown}`, `key/${ids.completed}`]) {
      await page.goto(`${filled.url}#/${screen}`)
      await calm(page)
      const width = await page.evaluate<number>('document.documentElement.scrollWidth')
      if (width > 320) wide.push(`${screen}: ${width}`)
    }
    expect(wide).toEqual([])
  })

  it('stands still while rows are selected, a dialog is open, or nobody looks', { timeout: 60_000 }, async () => {
    const page = await filled.visit(own.server, 'approver', 'unknown')
    const asked: string[] = []
    page.on('request', request => {
      if (request.url().includes('/api/v1/work?')) asked.push(request.url())
    })
    const during = async (ms: number) => {
      asked.length = 0
      await page.waitForTimeout(ms)
      return asked.length
    }
    await page.locator('a[data-row]').first().waitFor()
    expect(await during(5_000)).toBeGreaterThanOrEqual(1)
    await page.locator('tbody input[type=checkbox]').first().check()
    await page.waitForTimeout(500)
    expect(await during(5_000)).toBe(0)
    await page.getByRole('button', { name: 'Clear' }).click()
    expect(await during(5_000)).toBeGreaterThanOrEqual(1)
    await page.getByRole('button', { name: 'Look up all…' }).click()
    await page.waitForTimeout(500)
    expect(await during(5_000)).toBe(0)
    await page.keyboard.press('Escape')
    await page.evaluate(`
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })
      document.dispatchEvent(new Event('visibilitychange'))`)
    await page.waitForTimeout(500)
    expect(await during(5_000)).toBe(0)
  })

  it('holds new rows back until they are asked for', { timeout: 60_000 }, async () => {
    const page = await filled.visit(own.server, 'approver', 'unknown')
    await page.locator('a[data-row]').first().waitFor()
    const before = await page.locator('a[data-row]').count()
    await filled.shop.unknownPayment('late-1')
    await page.getByRole('button', { name: '1 new, show' }).waitFor({ timeout: 15_000 })
    expect(await page.locator('a[data-row]').count()).toBe(before)
    await page.getByRole('button', { name: '1 new, show' }).click()
    await expect.poll(() => page.locator('a[data-row]').count()).toBe(before + 1)
  })

  it('is not served to nobody, not even its files', async () => {
    for (const path of ['', 'assets/x.js', 'api/v1/session'])
      expect((await fetch(`${filled.url}${path}`)).status, path).toBe(401)
  })
})

describeBrowser('the mount', own => {
  it.each(['/admin', '/ops/latchkey/console', '//doubled//slash'])('may be %s', async prefix => {
    const world = await openWorld({ prefix })
    world.shop.workers.start()
    const page = await world.visit(own.server, 'viewer', 'workers')
    await page.getByRole('rowheader', { name: 'sweeper' }).waitFor({ timeout: 20_000 })
    // Without its slash it goes to the one with it, by a relative address.
    const bare = await page.request.get(world.url.slice(0, -1), { maxRedirects: 0 })
    expect([bare.status(), bare.headers()['location']]).toEqual([307, `./${prefix.split('/').at(-1)}/`])
    await page.goto(world.url.slice(0, -1))
    await page.waitForURL(`${world.url}**`)
    await page.getByRole('heading', { name: 'Now' }).waitFor()
    await world.close()
  })
})
