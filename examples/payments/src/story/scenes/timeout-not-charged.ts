import type { Scene } from '../scene.ts'

export const timeoutNotCharged: Scene = {
  title: 'Timeout that did not charge',
  premise: 'The bank drops the request: no answer and no charge, which looks the same to the API.',
  async play({ wish, send, sendUntilDone, provider, tell, expect }) {
    await provider.setFault({ kind: 'swallow', requests: 1 })
    const payout = wish('/payouts')
    const answer = await send(payout)
    expect(answer.status === 504, 'a payout without an answer is unknown')
    tell('waiting for the quarantine to pass')
    await sendUntilDone(payout)
    const keys = new Set(
      (await provider.asked()).filter(({ amount }) => amount === payout.amount).map(({ key }) => key),
    )
    expect(keys.size === 2, `the second try has a new key (found ${keys.size} keys)`)
  },
}
