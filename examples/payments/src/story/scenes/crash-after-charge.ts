import type { Wish } from '../client.ts'
import { rowOf } from '../facts.ts'
import type { Play, Scene } from '../scene.ts'
import { until } from '../waiting.ts'
import { problemOf } from '../why.ts'

/** Longer than the API lives, shorter than a client waits. */
const holdMs = 8_000

export const crashAfterCharge: Scene = {
  title: 'Crash after charge',
  premise: 'The API is killed with SIGKILL after three charges and before any answer, then restarted.',
  async play(play) {
    const { wish, send, charged, provider, stage, tell, happened } = play
    await provider.setFault({ kind: 'hold', ms: holdMs, requests: 3 })
    const [payment, payout, transfer] = [wish('/payments'), wish('/payouts'), wish('/transfers')]
    const wishes = [payment, payout, transfer]
    const sent = wishes.map(each => send(each))
    tell('waiting for the charges')
    for (const each of wishes) await until(`${each.path} is charged`, () => charged(each))
    happened('kill -9', 'the API')
    await stage.killApi()
    await Promise.all(sent)
    tell('restarting the API')
    // The restarted API gets its answers at once.
    await provider.setFault(null)
    await stage.startApi()
    await settleByHand(play, transfer)
    tell('waiting for the workers to finish payment and payout')
    await finished(play, payment)
    await finished(play, payout)
  },
}

/** A transfer has no look-up: a person reads the bank's ledger. */
async function settleByHand({ client, sendUntil, provider, tell, expect }: Play, transfer: Wish): Promise<void> {
  tell('waiting for the dead process’s lease to expire')
  // Retried without a pause: it must not run again even between the end of the lease and the next sweep.
  const retry = await sendUntil(transfer, ({ text }) => problemOf(text) !== 'in-progress')
  expect(problemOf(retry.text) === 'outcome-unknown', 'a retry of the unknown transfer is refused')
  const { row } = await rowOf(client, transfer)
  const charge = (await provider.ledger()).find(({ amount }) => amount === transfer.amount)
  const json = { transfer: charge?.id, amount: transfer.amount }
  await client.post(transfer.account, `/operator/unknown/${row?.id}/settle`, {
    verdict: { kind: 'happened', status: 201, json },
    by: 'the operator',
    reason: `${charge?.id} is in the ledger`,
  })
}

async function finished({ client }: Play, wish: Wish): Promise<void> {
  await until(`${wish.path} is completed`, async () => (await rowOf(client, wish)).row?.state === 'completed')
}
