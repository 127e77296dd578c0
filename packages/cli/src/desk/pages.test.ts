import { expect, it } from 'vitest'
import type { Page, Read } from 'latchkey/admin'
import { cutText, pagesOf } from './pages.ts'

const page = (items: number[], more: Partial<Page<number>> = {}): Read<Page<number>> => ({
  kind: 'found',
  value: { items, next: undefined, partial: false, ...more },
})

function from(pages: readonly Read<Page<number>>[]) {
  let at = 0
  return async () => pages[at++] ?? page([])
}

it('reads on behind a page that was not filled', async () => {
  const listed = await pagesOf(from([page([1], { next: 'a', partial: true }), page([2])]), 10)
  expect(listed).toEqual({ items: [1, 2], more: false, partial: false })
  expect(cutText(listed)).toBeUndefined()
})

it('says that a list was cut off, and does not call it empty', async () => {
  const listed = await pagesOf(from([page([], { partial: true })]), 10)
  expect(listed).toEqual({ items: [], more: false, partial: true })
  expect(cutText(listed)).toContain('took too long')
})

it('says that there are more than its limit', async () => {
  const listed = await pagesOf(from([page([1, 2], { next: 'a' })]), 2)
  expect(cutText(listed)).toContain('raise --limit')
})
