import type { Books } from '../books.ts'
import type { Wish } from '../client.ts'
import type { Play, Scene } from '../scene.ts'
import { until } from '../waiting.ts'

/** With a broker only. */
export function killedLedger(books: Books): Scene {
  return {
    title: 'Killed ledger',
    premise: 'The API is killed before it can publish a payment, the ledger between booking one and acknowledging it.',
    async play(play) {
      const published = await killApiBeforePublish(play, books)
      const acknowledged = await killLedgerBeforeAck(play, books)
      for (const wish of [published, acknowledged]) {
        const count = await books.bookingsOf(play.client, wish)
        play.happened('books', `${count} of ${wish.amount} for ${wish.account}`)
        play.expect(count === 1, `${wish.amount} is booked once`)
      }
      const { paid, booked: found } = await books.totals(play.client)
      play.happened('books', `${found} bookings of ${paid} payments and payouts in this story`)
      play.expect(found === paid, 'every payment and payout of the story is booked once')
    },
  }
}

async function killApiBeforePublish(play: Play, books: Books): Promise<Wish> {
  const { wish, send, stage, tell, happened, expect } = play
  const before = await allBooked(play, books)
  await books.refuse()
  happened('broker', 'accepts nothing')
  const payment = wish('/payments')
  try {
    await send(payment)
    happened('kill -9', 'the API, and its ledger ends with it')
    await stage.killApi()
  } finally {
    await books.accept()
  }
  expect((await books.deliveries()).made === before, 'the payment is not published')
  happened('broker', 'accepts messages again')
  tell('restarting the API and the ledger')
  await stage.startApi()
  await booked(play, books, payment)
  expect((await allBooked(play, books)) === before + 1, 'the payment is published once')
  return payment
}

async function killLedgerBeforeAck(play: Play, books: Books): Promise<Wish> {
  const { wish, send, tell, happened, expect } = play
  const before = await allBooked(play, books)
  await books.delayAcknowledgement()
  const payment = wish('/payments')
  await send(payment)
  await booked(play, books, payment)
  happened('kill -9', 'the ledger')
  await books.killLedger()
  tell('waiting for the broker to deliver it again')
  const deliveries = (await allBooked(play, books)) - before
  happened('broker', `delivered it ${deliveries} times`)
  expect(deliveries > 1, 'the broker delivers the payment again')
  return payment
}

async function booked({ client, tell }: Play, books: Books, wish: Wish): Promise<void> {
  tell('waiting for the booking')
  await until('the payment is booked', async () => (await books.bookingsOf(client, wish)) > 0)
}

/** Everything that was paid so far. How many deliveries were made until then. */
async function allBooked({ client }: Play, books: Books): Promise<number> {
  await until('everything is booked and acknowledged', async () => {
    const { paid, booked: found } = await books.totals(client)
    return found >= paid && (await books.deliveries()).open === 0
  })
  return (await books.deliveries()).made
}
