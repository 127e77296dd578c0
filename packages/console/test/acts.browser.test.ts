import type { Page } from 'playwright-core'
import { createAdmin } from 'latchkey/admin'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser } from '../../../test/servers/browser/describe-browser.ts'
import { hostile } from './world/filled.ts'
import { type Name, people } from './world/people.ts'
import { expectShown } from './world/shown.ts'
import { openWorld, type World } from './world/world.ts'

const by = (name: Name) => ({ who: people[name], source: 'cli' }) as const
const reason = 'ticket 4711'

describeBrowser('an act', own => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world?.close())

  /** The row as this person reads it now. */
  async function on(id: string) {
    const found = await createAdmin({ latchkey: world.shop.latchkey }).key(by('approver'), id)
    return { id, reason, version: found.kind === 'found' ? found.value.version : '' }
  }

  async function press(page: Page, button: string): Promise<void> {
    await page.getByRole('button', { name: button }).press('Enter')
  }

  /** Into the field that has the focus, and sent. */
  async function give(page: Page, text: string): Promise<void> {
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type(text)
    await page.keyboard.press('Enter')
  }

  it('is refused on a row that moved behind its dialog, and what was typed is still there', async () => {
    const id = await world.shop.unknownPayment('moves')
    const page = await world.visit(own.server, 'operator', `key/${id}`)
    const note = page.getByRole('button', { name: 'Note…' })
    await note.waitFor()
    // A read that is under way when the dialog opens, and answered after another operator has acted.
    const [asked, moved] = [gate(), gate()]
    await page.route(`**/keys/${id}`, async route => {
      asked.open()
      await moved.opened
      await route.continue()
    })
    await asked.opened
    await note.press('Enter')
    await createAdmin({ latchkey: world.shop.latchkey }).take(by('approver'), await on(id))
    moved.open()
    await page.getByRole('definition').getByText('lead@shop.example').waitFor()
    await give(page, 'seen by telephone')
    await expectShown(page.getByRole('dialog').getByText('row-moved'))
    expect(await page.getByRole('dialog').getByLabel('Reason').inputValue()).toBe('seen by telephone')
  })

  it('leaves the focus at the heading where its button is gone', async () => {
    const page = await world.visit(own.server, 'operator', `key/${await world.shop.unknownPayment('parks')}`)
    await press(page, 'Park…')
    await give(page, reason)
    await page.getByRole('button', { name: 'Resume…' }).waitFor()
    await expectShown(page.locator('h1:focus'))
  })

  it('gives the focus back to its button where nothing was done', async () => {
    const page = await world.visit(own.server, 'operator', `key/${await world.shop.unknownPayment('stays')}`)
    await press(page, 'Park…')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('button:focus', { hasText: 'Park…' }).waitFor()
  })

  it('is not offered any more on a row that was forgotten', async () => {
    const admin = createAdmin({ latchkey: world.shop.latchkey, approvals: { forget: 'never' } })
    await world.shop.pay({ scope: 'acme', order: 'goes', amount: 100 })
    const [paid] = await world.shop.latchkey.find({ reference: 'goes' })
    const id = paid?.id ?? ''
    const page = await world.visit(own.server, 'approver', `key/${id}`)
    await page.getByRole('button', { name: 'Forget…' }).waitFor()
    await admin.forget(by('approver'), { ...(await on(id)), confirm: id.slice(0, 4) })
    await expectShown(page.getByText('The row is gone:'))
    expect(await page.getByRole('button', { name: 'Forget…' }).count()).toBe(0)
    await page.getByRole('link', { name: 'What people did to it' }).press('Enter')
    await page.getByRole('cell', { name: 'forget' }).waitFor()
  })

  it('shows what a customer wrote as text, also what is revealed', async () => {
    const id = await world.shop.unknownPayment('hostile', { description: hostile })
    const page = await world.visit(own.server, 'approver', 'unknown')
    await expectShown(page.getByRole('cell', { name: hostile }))
    expect(await page.locator('main img, main script').count()).toBe(0)
    await page.goto(`${world.url}#/key/${id}`)
    await press(page, 'Reveal input')
    await give(page, reason)
    // As it is stored: JSON, which escapes quotes.
    await expectShown(page.getByRole('dialog').getByText(JSON.stringify(hostile).slice(1, -1)))
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect(await page.evaluate(() => Reflect.get(globalThis, 'pwned'))).toBeUndefined()
  })

  it('sends all messages of one cause again, by a plan', async () => {
    // Of its own: other tests leave messages in the outbox.
    const lonely = await openWorld()
    const { shop } = lonely
    shop.workers.start()
    shop.refusing.isOn = true
    for (const order of ['F-1', 'F-2', 'F-3']) await shop.pay({ scope: 'acme', order, amount: 500 })
    const page = await lonely.visit(own.server, 'operator', 'outbox')
    const again = page.getByRole('button', { name: /^Send all 3 of .+ again…$/ })
    await again.waitFor({ timeout: 30_000 })
    shop.refusing.isOn = false
    await again.press('Enter')
    await give(page, 'the template is back')
    await press(page, 'Send again: 3 messages')
    await page.getByText('3 of 3, done').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('No message is parked.').waitFor({ timeout: 30_000 })
    await lonely.close()
  })
})

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>(resolve => (open = resolve))
  return { opened, open: () => open() }
}
