import type { Page } from 'playwright-core'
import { createAdmin } from 'latchkey/admin'
import { createLatchkey, silentTelemetry } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser } from '../../../test/servers/browser/describe-browser.ts'
import { people } from './world/people.ts'
import { expectShown } from './world/shown.ts'
import { openWorld, serveConsole, type World } from './world/world.ts'

/** More than the page reads in one turn of a plan. */
const payments = 40

describeBrowser('a page that is read again and again', own => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
    for (let at = 0; at < payments; at += 1) await world.shop.unknownPayment(`A-${at}`)
  })
  afterAll(() => world?.close())

  /** As if another tab were in front. */
  const show = (page: Page, isShown: boolean) =>
    page.evaluate(`
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isShown} })
      document.dispatchEvent(new Event('visibilitychange'))`)

  function requestsOf(page: Page): string[] {
    const asked: string[] = []
    page.on('request', request => asked.push(request.url()))
    return asked
  }

  it('asks nothing while nobody looks, and asks when somebody looks again', async () => {
    const page = await world.visit(own.server, 'viewer', 'unknown', { hasOwnClock: true })
    await expectShown(page.getByText(`${payments} rows`))
    await page.locator('a[data-row]').first().waitFor()
    const asked = requestsOf(page)
    await page.clock.runFor(3_000)
    await expect.poll(() => asked.length).toBeGreaterThan(0)
    await show(page, false)
    asked.length = 0
    await page.clock.runFor(60_000)
    // One of the test's own: by the time it is seen, every other one would be.
    await page.evaluate(`fetch('api/v1/rates')`)
    expect(asked.map(address => new URL(address).pathname)).toEqual(['/admin/api/v1/rates'])
    await show(page, true)
    await expect.poll(() => asked.length).toBeGreaterThan(0)
  })

  it('shows the end of a plan to a person who looked elsewhere meanwhile', async () => {
    const page = await world.visit(own.server, 'operator', 'unknown', { hasOwnClock: true })
    await page.getByRole('button', { name: 'Take all…' }).press('Enter')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('mine')
    await page.keyboard.press('Enter')
    const start = page.getByRole('button', { name: `Take: ${payments} rows` })
    await start.waitFor()
    await show(page, false)
    // Before it has read how the plan goes: it is read when the plan starts, and when its start is answered.
    let readings = 0
    await page.route(/\/bulk\/[^/]+$/, async route => {
      await route.abort()
      readings += 1
    })
    await start.press('Enter')
    await expect.poll(() => readings).toBeGreaterThanOrEqual(2)
    const taken = () => world.shop.store.admin?.work({ kind: 'unknown', owner: people.operator.name, limit: 100 })
    await expect.poll(async () => (await taken())?.rows.length).toBe(payments)
    await page.clock.runFor(60_000)
    await page.unrouteAll({ behavior: 'wait' })
    await show(page, true)
    await expectShown(page.getByText(`${payments} of ${payments}, done`))
  })

  it('stays on its screen when the last unknown outcome is settled', async () => {
    const lonely = await openWorld()
    const id = await lonely.shop.unknownPayment('B-1')
    const page = await lonely.visit(own.server, 'viewer', '')
    await page.getByRole('heading', { name: 'Unknown outcomes' }).waitFor()
    const admin = createAdmin({ latchkey: lonely.shop.latchkey })
    const by = { who: people.operator, source: 'cli' } as const
    const found = await admin.key(by, id)
    const version = found.kind === 'found' ? found.value.version : ''
    const evidence = { kind: 'reference', reference: 'ch_1', value: { id: 'ch_1', status: 'succeeded' } } as const
    await admin.settle(by, { id, version, reason: 'seen', effect: 'charge', answer: 'happened', evidence })
    await page.getByText('No unknown outcomes.').waitFor()
    await page.getByText('The last answer of an operator').waitFor()
    // The count beside the name of the screen is read less often.
    await page.getByRole('link', { name: 'Unknown', exact: true }).waitFor()
    await expectShown(page.getByRole('heading', { name: 'Unknown outcomes' }))
    await lonely.close()
  })

  it('lists what is unknown on a store without tables of operators, and offers no act', async () => {
    const latchkey = createLatchkey({
      store: withoutTables(),
      scope: () => 'acme',
      maintenance: false,
      telemetry: silentTelemetry,
    })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    const failed = () => Promise.reject(new Error('read timeout'))
    await pay.run({ scope: 'acme', key: 'k', input: 1 }, failed).catch(() => {})
    const served = await serveConsole(latchkey)
    const page = await served.visit(own.server, 'approver', 'unknown')
    await page.locator('main').getByText('no operators’ tables').waitFor()
    const link = page.locator('a[data-row]')
    await link.waitFor()
    expect(await page.getByRole('button', { name: /Take|Look up|Import/ }).count()).toBe(0)
    await link.press('Enter')
    await page.getByRole('heading', { name: 'pay · acme' }).waitFor()
    await served.close()
    await latchkey.close()
  })
})

/** As Redis is one. */
function withoutTables() {
  const { admin: _admin, ...core } = memoryStore()
  const faculties = core.traits.faculties.filter(faculty => faculty !== 'admin')
  return { ...core, traits: { ...core.traits, faculties } }
}
