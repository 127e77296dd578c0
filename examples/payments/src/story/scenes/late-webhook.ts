import { rowOf } from '../facts.ts'
import { hirePostman, type Letter } from '../postman.ts'
import type { Scene } from '../scene.ts'
import { until } from '../waiting.ts'

export const lateWebhook: Scene = {
  title: 'Late webhook',
  premise: 'The answer is lost, look-ups fail, the webhook is late, and a forged one arrives first.',
  async play({ wish, send, provider, client, happened, expect }) {
    const postman = await hirePostman(provider)
    const deliver = async (what: string, letter: Letter) => {
      const status = await postman.deliver(letter)
      happened('postman', `${what} → ${status}`)
      return status
    }
    try {
      await provider.setBooks(false)
      await provider.setFault({ kind: 'lose-response', requests: 1 })
      const payout = wish('/payouts')
      expect((await send(payout)).status === 504, 'a payout without an answer is unknown')
      await until('the provider has sent its webhook', () => postman.letters.length > 0)
      const [letter] = postman.letters
      if (letter === undefined) throw new Error('the webhook is missing')
      expect((await deliver('a forged copy', forged(letter))) === 400, 'a forged webhook gets 400')
      const { row, evidence } = await rowOf(client, payout)
      expect(row?.state === 'unknown' && evidence.length === 0, 'a forged webhook changes nothing')
      expect((await send(payout)).status === 409, 'a retry gets 409 while the outcome is unknown')
      expect((await deliver('the genuine webhook', letter)) < 300, 'the genuine webhook is accepted')
      await until('the payout is completed', async () => (await rowOf(client, payout)).row?.state === 'completed')
      expect((await deliver('the same delivery again', letter)) === 400, 'a replayed webhook gets 400')
    } finally {
      await postman.goHome()
    }
  },
}

/** Another charge under the genuine signature. */
function forged({ headers, body }: Letter): Letter {
  return { headers, body: body.replace(/"id":"[^"]*"/, '"id":"ch_forged"') }
}
