import { problemOf } from '../why.ts'
import type { Scene } from '../scene.ts'

export const providerDown: Scene = {
  title: 'Provider down',
  premise: 'One payment finds the provider down; for another it goes down right after the charge.',
  async play({ wish, send, sendUntilDone, charged, provider, tell, expect }) {
    await provider.setFault({ kind: 'down' })
    const before = wish('/payments')
    await send(before)
    expect(!(await charged(before)), 'a request that was never sent is not charged')
    tell('the provider is back')
    await provider.setFault({ kind: 'fall', ms: 3_000, requests: 1 })
    const after = wish('/payments')
    const answer = await send(after)
    const code = problemOf(answer.text)
    expect(
      answer.status === 201 || code === 'outcome-unknown' || !(await charged(after)),
      `the client does not get ${code} for a charge that was made`,
    )
    tell('waiting for the provider')
    await sendUntilDone(after)
    await sendUntilDone(before)
  },
}
