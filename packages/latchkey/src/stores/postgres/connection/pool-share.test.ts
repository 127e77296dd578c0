import { expect, it } from 'vitest'
import pg from 'pg'
import { shareOf } from './pool-share.ts'

/** Never connected: a share only counts. */
const fullShare = () => {
  const share = shareOf(new pg.Pool({ max: 2 }))
  expect([share.tryEnter(), share.tryEnter()]).toEqual([true, false])
  return share
}

it('hands the place on to a caller whose look failed', async () => {
  const share = fullShare()
  let looks = 0
  const entered = share.enter(() => {
    looks += 1
    return Promise.reject(new Error('the read failed'))
  })
  await expect.poll(() => looks).toBe(1)
  share.leave()
  expect(await entered).toBe(true)
})

it('needs no place for a caller that is answered from its row, and looks for all that wait at the same time', async () => {
  const share = fullShare()
  let looks = 0
  const look = (isAnswered: boolean) => () => {
    looks += 1
    return Promise.resolve(isAnswered)
  }
  const [seen, unseen] = [share.enter(look(true)), share.enter(look(false))]
  expect(await seen).toBe(false)
  // The other one's look was sent in the same turn.
  expect(looks).toBe(2)
  share.leave()
  expect(await unseen).toBe(true)
})
