/** Publishes round by round. In each, one request or one confirm is lost, and the connection with it. */
import { drain, drainAll, type OpenBroker, order } from './broker-fixture.ts'
import type { OutboxFixture } from './fixture.ts'

/** Three in `npm test`; `npm run proof` asks for more. */
export const cuts = Number(process.env['LATCHKEY_CUTS'] ?? '3')
/** Each cut costs a timeout and a new connection. */
export const stormLimitMs: number = 60_000 + cuts * 10_000

const aggregateCount = 20

export interface Storm {
  /** The ids, by aggregate, in the order in which they were appended. */
  readonly aggregates: readonly string[][]
  /** In how many rounds the relay noticed that something was lost. */
  readonly noticed: number
}

export async function publishInStorm(fixture: OutboxFixture, broker: OpenBroker): Promise<Storm> {
  const aggregates = Array.from({ length: aggregateCount }, (): string[] => [])
  let noticed = 0
  for (let round = 0; round < cuts; round += 1) {
    for (const [index, ids] of aggregates.entries()) {
      const id = `s${index}-${round}`
      ids.push(id)
      await fixture.append(order(id, { aggregate: `s${index}` }))
    }
    // Another aggregate each time.
    broker.cut(`word-s${(round * 7) % aggregateCount}-${round}.`, round % 2 === 0 ? 'reply' : 'request')
    fixture.makeDue()
    const turns = await drain(fixture, broker.target)
    if (turns.some(turn => turn.kind === 'worked' && turn.failed > 0)) noticed += 1
  }
  await drainAll(fixture, broker.target)
  return { aggregates, noticed }
}
