import { newKey } from '../client.ts'
import type { Scene } from '../scene.ts'

export const misuse: Scene = {
  title: 'Misuse',
  premise: 'One key is reused for another amount, and by another tenant.',
  async play({ wish, send, expect }) {
    const key = newKey()
    const payment = wish('/payments', { key })
    const first = await send(payment)
    const other = await send(wish('/payments', { key, rightful: false }))
    expect(other.status === 422, 'the same key for another amount is refused')
    const stranger = await send(wish('/payments', { key, account: 'globex', amount: payment.amount }))
    expect(!stranger.replayed && stranger.text !== first.text, 'another tenant never gets this tenant’s answer')
  },
}
