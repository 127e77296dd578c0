import type { Locator } from 'playwright-core'
import { expect } from 'vitest'

/** A page says this in time, or something is wrong with it. */
const withinMs = 20_000

/** As an assertion: what a page does not show has failed a test, and not broken it. */
export async function expectShown(locator: Locator): Promise<void> {
  const isShown = await locator
    .first()
    .waitFor({ timeout: withinMs })
    .then(
      () => true,
      () => false,
    )
  expect(isShown, `${locator} is shown`).toBe(true)
}
