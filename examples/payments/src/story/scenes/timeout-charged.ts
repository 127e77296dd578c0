import type { Scene } from '../scene.ts'
import { until } from '../waiting.ts'

/** After the first look-up, well inside the quarantine. */
const lateMs = 2_500

export const timeoutCharged: Scene = {
  title: 'Timeout that did charge',
  premise: 'The bank pays seconds after the API has given up, and sends no webhook.',
  async play({ wish, send, sendUntilDone, provider, tell, expect }) {
    await provider.setWebhook(null)
    await provider.setFault({ kind: 'late', ms: lateMs, requests: 1 })
    const payout = wish('/payouts')
    const answer = await send(payout)
    expect(answer.status === 504, 'a payout without an answer is unknown')
    tell('waiting for a look-up to find it')
    await sendUntilDone(payout)
    // A shop that believed "not found" too early has its answer by now; the late charge is made all the same.
    const [first] = (await provider.asked()).filter(({ amount }) => amount === payout.amount)
    await until('the late charge is made', async () => (await provider.ledger()).some(({ key }) => key === first?.key))
  },
}
