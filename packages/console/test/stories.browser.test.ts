import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser } from '../../../test/servers/browser/describe-browser.ts'
import { countKeys } from './world/keyboard.ts'
import { sayNo } from './world/say-no.ts'
import { openWorld, type World } from './world/world.ts'

const settleWithinMs = 30_000

describeBrowser('an operator with a keyboard', own => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
    world.shop.workers.start()
  })
  afterAll(() => world?.close())

  it('finds a payment by its order number in two steps, and reads its story without its body', async () => {
    await world.shop.pay({ scope: 'acme', order: 'B-77', amount: 1_290 })
    const page = await world.visit(own.server, 'viewer', 'now')
    const keys = countKeys(page)
    await keys.press('/')
    await keys.say('B-77')
    await keys.press('Enter')
    await page.getByRole('heading', { name: 'payments.create · acme' }).waitFor()
    expect(keys.pressed()).toBe(2)
    const story = await page.getByRole('region', { name: 'What happened' }).innerText()
    for (const part of [
      'The first request',
      'The handler recorded the reference B-77',
      'charge: done',
      'The outcome was stored',
    ])
      expect(story).toContain(part)
    expect(await page.getByRole('button', { name: /Reveal/ }).count()).toBe(0)
  })

  it('resumes a group that a deploy had parked, when the version that it needs is back', async () => {
    const { shop } = world
    await shop.deployTooEarly(60)
    const page = await world.visit(own.server, 'operator', 'parked')
    await page.getByText('60 rows').waitFor({ timeout: settleWithinMs })
    await page.getByText('· definition-changed').waitFor()
    await page.locator('a[data-row]').first().press('o')
    await page.getByText('version 1 of its definition').waitFor()
    await page.goBack()
    await page.getByText('60 rows').waitFor()
    shop.bringBackOldVersion()
    const keys = countKeys(page)
    await keys.press('r')
    await keys.say('version 1 is declared again')
    await keys.press('Enter')
    await page.getByRole('button', { name: 'Resume: 60 rows' }).waitFor()
    await keys.press('Enter')
    await page.getByText('60 of 60, done').waitFor({ timeout: settleWithinMs })
    await keys.press('Escape')
    await page.getByText('Nothing is parked.').waitFor({ timeout: settleWithinMs })
    expect(keys.pressed()).toBe(4)
    await expect.poll(() => shop.reportsDone(), { timeout: settleWithinMs }).toBe(60)
  })

  it('sees a dead sweeper although every counter is zero', { timeout: 120_000 }, async () => {
    const lonely = await openWorld()
    lonely.shop.workers.start()
    const page = await lonely.visit(own.server, 'viewer', 'now')
    await page.getByText('No outcome is unknown').waitFor({ timeout: settleWithinMs })
    await lonely.shop.workers.stop()
    lonely.shop.ageBeats(130_000)
    await page.getByText('The sweeper is silent.').waitFor({ timeout: 15_000 })
    await page.goto(`${lonely.url}#/unknown`)
    await page.getByText('An empty list means nothing until it runs again.').waitFor()
    await lonely.close()
  })

  it('sees how long an operation takes in the whole fleet, and how much of its lease', async () => {
    const page = await world.visit(own.server, 'viewer', 'operations')
    const row = page.getByRole('row', { name: /^transfers\.create/ })
    await row.getByText('no executions in the last hour').waitFor()
    await row.getByRole('cell', { name: 'hold', exact: true }).waitFor()
    // As another process counts them.
    const took = (edge: number, count: number) => ({
      ...{ operation: 'transfers.create', metric: `execution.duration.${edge}`, count },
    })
    await world.shop.store.admin?.addRates([took(50, 90), took(20_000, 10)])
    await row.getByRole('cell', { name: '≤ 50 ms', exact: true }).waitFor({ timeout: settleWithinMs })
    await row.getByRole('cell', { name: '≤ 20 s', exact: true }).waitFor()
    await row.getByRole('cell', { name: '≤ 67 %', exact: true }).waitFor()
    await page.getByText('the upper edge of a step').waitFor()
  })

  it('skips a receipt that its consumer will never take, told what that consumer misses', async () => {
    const { shop } = world
    shop.refusing.isOn = true
    await shop.pay({ scope: 'acme', order: 'E-5', amount: 500 })
    const operator = await world.visit(own.server, 'operator', 'outbox')
    const row = (page: Page) => page.getByRole('row').filter({ hasText: 'E-5' })
    await row(operator).getByRole('button', { name: 'Send again…' }).waitFor({ timeout: settleWithinMs })
    expect(await row(operator).getByRole('button', { name: 'Skip…' }).count()).toBe(0)
    const page = await world.visit(own.server, 'approver', 'outbox')
    const lanes = page.getByRole('region', { name: 'Lanes' })
    await lanes.getByRole('columnheader', { name: 'waiting behind a parked one' }).waitFor()
    expect(await lanes.getByRole('rowheader').count()).toBeGreaterThan(0)
    await row(page).getByRole('button', { name: 'Skip…' }).press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('The consumer of receipts will miss this message of E-5').waitFor()
    await page.keyboard.type('the template is gone, support has written to them')
    await page.keyboard.press('Enter')
    await row(page).waitFor({ state: 'detached' })
    await page.goto(`${world.url}#/audit`)
    await page.getByRole('cell', { name: /to receipts of aggregate E-5/ }).waitFor()
    shop.refusing.isOn = false
  })

  it('keeps the form of the second of two operators, and shows what the first recorded', async () => {
    const id = await world.shop.unknownPayment('C-1')
    const [first, second] = [
      await world.visit(own.server, 'operator', `key/${id}`),
      await world.visit(own.server, 'approver', `key/${id}`),
    ]
    await answerYes(first, id, 'seen in the dashboard')
    await fillYes(second, id, 'the customer has a receipt')
    await first.getByRole('button', { name: 'Record answer' }).press('Enter')
    await first.getByText('The answer is recorded.').first().waitFor()
    await second
      .getByRole('button', { name: 'Record answer' })
      .press('Enter')
      .catch(() => {})
    // The story has the word as well, once the refused attempt is in the audit.
    const moved = second.getByRole('group', { name: 'Row moved' })
    await moved.getByText('row-moved', { exact: true }).waitFor()
    const line = moved.getByRole('listitem').filter({ hasText: 'seen in the dashboard' })
    await line.getByText('on-call@shop.example').waitFor()
    expect(await moved.getByText('the customer has a receipt').count()).toBe(0)
    expect(await second.getByRole('textbox', { name: /^Reason/ }).inputValue()).toBe('the customer has a receipt')
    expect(await second.getByLabel('Reference at the provider').inputValue()).toBe('ch_c1')
  })

  it('shows an auditor who said no, and exports it', async () => {
    const id = await world.shop.unknownPayment('D-1')
    await world.shop.passQuarantine()
    await sayNo(world.shop, {
      id,
      by: 'operator',
      approvedBy: 'approver',
      reason: 'the provider confirms by ticket 4711',
    })
    const page = await world.visit(own.server, 'viewer', 'audit')
    await page.getByRole('cell', { name: 'the provider confirms by ticket 4711' }).first().waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export NDJSON' }).press('Enter'),
    ])
    const lines = readFileSync(await download.path(), 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { by: string; act: string; reason: string; evidence?: string; refused?: string })
    const said = lines.filter(
      ({ by, act, refused }) => by === 'lead@shop.example' && act.startsWith('settle') && refused === undefined,
    )
    expect(said).toHaveLength(1)
    expect(said[0]?.evidence).toContain('ticket:4711')
  })
})

async function fillYes(page: Page, id: string, reason: string): Promise<void> {
  await page.getByRole('radio', { name: 'Yes' }).press('Space')
  await page.getByLabel('Reference at the provider').pressSequentially('ch_c1')
  await page.getByLabel('Result, as the provider gave it').pressSequentially('{"id":"ch_c1","status":"succeeded"}')
  await page.getByRole('textbox', { name: /^Reason/ }).pressSequentially(reason)
  await page.getByLabel('to confirm').pressSequentially(id.slice(0, 4))
}

async function answerYes(page: Page, id: string, reason: string): Promise<void> {
  await fillYes(page, id, reason)
}
