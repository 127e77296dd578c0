import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { describeBrowser } from '../../../test/servers/browser/describe-browser.ts'
import { openWorld, type World } from './world/world.ts'

const rows = 300

describeBrowser('a list of many rows', own => {
  let world: World
  let page: Page
  beforeAll(async () => {
    world = await openWorld()
    for (let at = 0; at < rows; at += 1) await world.shop.transfer('acme', `transfer-${at}`)
    page = await world.visit(own.server, 'operator', 'unknown')
    for (const shown of [200, 300]) {
      await page.getByRole('button', { name: 'Show more' }).click()
      await page.locator(`table[aria-rowcount="${shown + 1}"]`).waitFor()
    }
  })
  afterAll(() => world?.close())
  // The button for more is below the list.
  beforeEach(async () => {
    await page.evaluate('scrollTo(0, 0)')
    await row(1).waitFor()
  })

  const drawn = () => page.locator('a[data-row]').count()
  const row = (place: number) => page.locator(`tr[aria-rowindex="${place + 1}"]`)

  it('is drawn where it is looked at, and has the height and the count of all', async () => {
    expect(await drawn()).toBeLessThan(100)
    const [all, one] = [await page.locator('tbody').boundingBox(), await row(1).boundingBox()]
    expect(all?.height).toBeGreaterThan((rows - 50) * (one?.height ?? Infinity))
    await page.mouse.move(600, 500)
    await page.mouse.wheel(0, 1_000_000)
    await row(rows).waitFor()
    expect(await row(1).count()).toBe(0)
    expect(await drawn()).toBeLessThan(100)
    await page.mouse.wheel(0, -1_000_000)
    await row(1).waitFor()
  })

  it('is walked through by the keyboard, beyond what was drawn at first', async () => {
    const first = await drawn()
    for (let step = 0; step < first + 5; step += 1) {
      await page.keyboard.press('j')
      await row(step + 1)
        .locator('a:focus')
        .waitFor()
    }
    for (let step = first + 4; step > 0; step -= 1) await page.keyboard.press('k')
    await row(1).locator('a:focus').waitFor()
  })

  it('shows the row that has the focus above the bar of acts', async () => {
    const bar = page.getByRole('toolbar', { name: 'Selected rows' })
    const focused = page.locator('a[data-row]:focus')
    await row(1).locator('a[data-row]').focus()
    for (let place = 2; place <= 30; place += 1) {
      await page.keyboard.press('j')
      await row(place).locator('a:focus').waitFor()
      const [above, below] = [await focused.boundingBox(), await bar.boundingBox()]
      expect((above?.y ?? Infinity) + (above?.height ?? 0), `row ${place}`).toBeLessThanOrEqual(below?.y ?? 0)
    }
  })

  it('is selected whole, also the rows that are not drawn', async () => {
    await page.getByRole('checkbox', { name: 'Select all shown rows' }).check()
    await page.getByText(`${rows} selected, updates paused`).waitFor()
  })
})
