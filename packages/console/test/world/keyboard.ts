/** A keyboard that counts: acceptance stories have a budget of keystrokes, in which the text of a reason is free. */
import type { Page } from 'playwright-core'

export interface CountedKeys {
  press(key: string): Promise<void>
  /** What a person has to type in any case: a reason, an order number. */
  say(text: string): Promise<void>
  pressed(): number
}

export function countKeys(page: Page): CountedKeys {
  let count = 0
  return {
    async press(key) {
      count += 1
      await page.keyboard.press(key)
    },
    async say(text) {
      await page.locator('input[type=text]:focus, textarea:focus').waitFor()
      await page.keyboard.type(text)
    },
    pressed: () => count,
  }
}
