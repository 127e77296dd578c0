import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { metricsTable, shownTable, withMetricsTable } from './table.ts'

const page = readFileSync(new URL('../../docs/observe/README.md', import.meta.url), 'utf8')

it('is what docs/observe shows: `npm run observe` writes it', () => {
  expect(shownTable(page)).toBe(metricsTable())
})

it('replaces what was there', () => {
  const stale = page.replace('New keys.', 'Old keys.')
  expect(stale).not.toBe(page)
  expect(withMetricsTable(stale)).toBe(page)
})
