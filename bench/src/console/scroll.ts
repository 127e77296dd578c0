/** A person who scrolls through the whole queue, and the tasks that the page runs meanwhile. */
import type { Page } from 'playwright-core'
import type { Chromium } from '../../../test/servers/browser/chromium.ts'
import { type Task, traceTasks } from './long-tasks.ts'
import { serveConsole } from './serve.ts'

/** Down and up again: long enough for the list to be read again, every two seconds, in the middle of it. */
const wheel = { steps: 140, stepPx: 300, everyMs: 50 }

/** As many as the API gives at once. */
const pageRows = 100

export async function traceScroll(browser: Chromium, rows: number): Promise<readonly Task[]> {
  const served = await serveConsole(rows)
  const context = await browser.open()
  try {
    const page = await context.newPage()
    await page.goto(served.link)
    await page.goto(`${new URL('/', served.link).href}#/unknown`)
    await showAll(page, rows)
    await page.mouse.move(600, 500)
    return await traceTasks(await context.newCDPSession(page), () => scroll(page))
  } finally {
    await context.close()
    await served.close()
  }
}

/** Page after page, and back to the top. */
async function showAll(page: Page, rows: number): Promise<void> {
  await page.locator('a[data-row]').first().waitFor()
  for (let shown = pageRows; shown < rows; shown += pageRows) {
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.locator(`table[aria-rowcount="${shown + pageRows + 1}"]`).waitFor()
  }
  await page.evaluate('scrollTo(0, 0)')
}

async function scroll(page: Page): Promise<void> {
  for (const direction of [1, -1]) {
    for (let step = 0; step < wheel.steps; step++) {
      await page.mouse.wheel(0, direction * wheel.stepPx)
      await page.waitForTimeout(wheel.everyMs)
    }
  }
}
