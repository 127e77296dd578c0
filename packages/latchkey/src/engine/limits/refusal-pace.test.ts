import { expect, it } from 'vitest'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { lateByMs, RefusalPace, refusalsAtOncePerMinute } from './refusal-pace.ts'

function scene() {
  const clock = fakeClock()
  const pace = new RefusalPace(clock)
  const sent: string[] = []
  /** The refusals that are sent by now. */
  async function refuse(scope: string, times: number): Promise<readonly string[]> {
    for (let n = 0; n < times; n++) void pace.wait(scope).then(() => sent.push(scope))
    return sentByNow()
  }
  async function sentByNow(): Promise<readonly string[]> {
    await new Promise(resolve => setImmediate(resolve))
    return sent.splice(0)
  }
  return { clock, refuse, sentByNow }
}

it('sends a minute of refusals at once, and the others late', async () => {
  const { clock, refuse, sentByNow } = scene()
  expect(await refuse('flood', refusalsAtOncePerMinute + 3)).toHaveLength(refusalsAtOncePerMinute)
  clock.advance(lateByMs - 1)
  expect(await sentByNow()).toEqual([])
  clock.advance(1)
  expect(await sentByNow()).toEqual(['flood', 'flood', 'flood'])
})

it('lets no scope wait for another', async () => {
  const { refuse } = scene()
  await refuse('flood', refusalsAtOncePerMinute + 3)
  expect(await refuse('other', 1)).toEqual(['other'])
})

it('holds a thousand of them, and sends the next at once', async () => {
  const { clock, refuse, sentByNow } = scene()
  await refuse('flood', refusalsAtOncePerMinute + 1_000)
  expect(await refuse('flood', 2)).toEqual(['flood', 'flood'])
  clock.advance(lateByMs)
  expect(await sentByNow()).toHaveLength(1_000)
  // As many tokens as came in that time, and then late again.
  expect(await refuse('flood', 10)).toHaveLength(2)
})
