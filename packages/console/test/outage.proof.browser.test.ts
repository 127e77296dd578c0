import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser } from '../../../test/servers/browser/describe-browser.ts'
import { countKeys } from './world/keyboard.ts'
import { openWorld, type World } from './world/world.ts'

/** Four hundred rows, row by row, on a busy machine. */
const settleWithinMs = 120_000

describeBrowser('an operator after an outage of the provider', own => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
    world.shop.workers.start()
  })
  afterAll(() => world?.close())

  it(
    'settles 400 payments after ten minutes of timeouts, with at most 15 keystrokes beside the reasons',
    { timeout: 600_000 },
    async () => {
      const { shop } = world
      const orders = Array.from({ length: 400 }, (_, at) => `A-${1_000 + at}`)
      shop.provider.mode = 'charges, no answer'
      for (const order of orders.slice(0, 398)) await shop.pay({ scope: 'acme', order, amount: 5_000 })
      shop.provider.mode = 'no charge, no answer'
      for (const order of orders.slice(398)) await shop.pay({ scope: 'acme', order, amount: 5_000 })
      shop.provider.mode = 'answers'
      shop.provider.indexed = 380

      const page = await world.visit(own.server, 'operator', '')
      await page.getByText('400 rows').waitFor()
      const keys = countKeys(page)
      await keys.press('l')
      await keys.say('the provider had an outage')
      await keys.press('Enter')
      await page.getByText('400 rows are fixed').or(page.getByText('400 rows')).first().waitFor()
      await page.getByRole('button', { name: 'Look up at the provider: 400 rows' }).waitFor()
      await keys.press('Enter')
      await page.getByText('400 of 400, done').waitFor({ timeout: settleWithinMs })
      await keys.press('Escape')
      await page.getByText('20 rows', { exact: false }).waitFor({ timeout: settleWithinMs })

      await shop.passQuarantine()
      await keys.press('i')
      await page.getByLabel('CSV file').setInputFiles({
        name: 'export.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from(shop.provider.exportOf(orders.slice(380))),
      })
      await keys.say('export of 10:30')
      await keys.press('Enter')
      await page.getByRole('button', { name: 'Record what the export says: 20 rows' }).waitFor()
      await keys.press('Enter')
      await page.getByText('20 of 20, done').waitFor({ timeout: settleWithinMs })
      await page.getByText('second-person-needed: 2').waitFor()
      await keys.press('Escape')

      const second = await world.visit(own.server, 'approver', 'proposals')
      const others = countKeys(second)
      for (const left of [1, 0]) {
        await second.getByRole('button', { name: 'Approve…' }).first().waitFor()
        await others.press('a')
        await others.say('the provider confirms by ticket 4711')
        await others.press('Enter')
        await expect.poll(() => second.getByRole('button', { name: 'Approve…' }).count()).toBe(left)
      }
      expect(keys.pressed() + others.pressed()).toBeLessThanOrEqual(15)
      await expect.poll(() => shop.unknown(), { timeout: settleWithinMs }).toBe(0)
      await expect.poll(() => shop.provider.charges.size, { timeout: settleWithinMs }).toBe(400)
    },
  )
})
