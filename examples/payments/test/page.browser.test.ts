import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser } from '../../../test/servers/browser/describe-browser.ts'
import { killTheRest, type Playground, startPlayground } from './playground-process.ts'

/** On a busy machine, with a provider that is restarted after three seconds. */
const settledWithinMs = 40_000

describeBrowser('the page of the playground', own => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-page-test-'))
  let playground: Playground
  beforeAll(async () => {
    playground = await startPlayground('--dir', directory, '--quarantine', '4000')
  })
  afterAll(async () => {
    await playground.stop()
    killTheRest()
    rmSync(directory, { recursive: true, force: true })
  })

  async function open(): Promise<Page> {
    const page = await (await own.server.open()).newPage()
    await page.goto(playground.url)
    await page.locator('#scenes li').first().waitFor()
    return page
  }

  /** Presses the button, and waits until the newest line of the strip says all of this. */
  async function press(page: Page, button: string, ...says: readonly string[]): Promise<string> {
    await page.getByRole('button', { name: button, exact: true }).click()
    const newest = page.locator('#strip > li').first()
    for (const text of says) await newest.getByText(text).first().waitFor({ timeout: settledWithinMs })
    return newest.innerText()
  }

  it('pays once for two presses at once, and refuses the key for another body', async () => {
    const page = await open()
    await press(page, 'Pay twice at once', 'completed', '1 charge')
    const other = await press(page, 'Pay, then the same key with another body', '422 key-reused', 'completed')
    expect(other).toContain('1 charge')
    await page.context().close()
  })

  it('shows a payment whose provider was killed turn unknown, settle by itself, and end with one charge', async () => {
    const page = await open()
    const told = await press(page, 'Pay, and kill the provider', '504 outcome-unknown', 'completed', '201, replayed')
    expect(told).toContain('1 charge')
    await page.context().close()
  })

  it('shows the evidence that settled a payout whose answer was cut', async () => {
    const page = await open()
    await page.getByLabel('globex').check()
    const told = await press(
      page,
      'Pay out, and cut the answer',
      '504 outcome-unknown',
      'webhook: happened',
      '201, replayed',
    )
    expect(told).toContain('globex')
    expect(told).toContain('1 charge')
    await page.context().close()
  })

  it('refuses to run while the database is paused, and pays once it is back', async () => {
    const page = await open()
    await press(page, 'Pause the database, and pay', '503', '201', '1 charge')
    await page.context().close()
  })

  it('plays a scene of the story', async () => {
    const page = await open()
    await page.locator('#scenes button').first().click()
    await page.locator('#scene').getByText('0 failed').waitFor({ timeout: settledWithinMs })
    await page.context().close()
  })

  it('lets no other page press its buttons', async () => {
    for (const path of ['kill', 'pause', 'fault', 'scenes/0']) {
      const cross = { 'sec-fetch-site': 'cross-site', origin: 'http://evil.example', 'content-type': 'text/plain' }
      const answer = await fetch(`${playground.url}/play/${path}`, { method: 'POST', headers: cross, body: '{}' })
      expect(answer.status, path).toBe(403)
    }
    const old = await fetch(`${playground.url}/play/kill`, {
      method: 'POST',
      headers: { origin: 'http://evil.example' },
    })
    expect(old.status).toBe(403)
  })
})
