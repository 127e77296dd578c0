/** What a target must do on every broker, with the real relay over a real outbox. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createRelay, type RelayTurn, type Target } from '../../src/outbox/index.ts'
import type { Message, NewMessage } from '../../src/ports/outbox.ts'
import { message, openFixture, type OutboxFixture } from './fixture.ts'

export interface StoredMessage {
  readonly id: string
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

export interface OpenBroker {
  /** Over a wire that can be cut, with a timeout of about a second. It takes messages of the topic `orders`. */
  readonly target: Target
  /** What the broker has stored so far; messages of one aggregate in their order. */
  stored(): Promise<readonly StoredMessage[]>
  /** The next message whose payload contains `word` is lost, or its confirm is, together with its connection. */
  cut(word: string, lost: 'request' | 'reply'): void
  /** A message that the broker never accepts, and what the target says about it. */
  refused(id: string): { readonly message: NewMessage; readonly cause: string }
  close(): Promise<void>
}

export interface BrokerHarness {
  open(): Promise<OpenBroker>
  /** How many copies a lost confirm leaves: 1 where the broker recognises an id. */
  readonly copies: number
}

/** With a word of its own in the payload, by which the wire finds it. */
export function order(id: string, over: Partial<NewMessage> = {}): NewMessage {
  return message(id, { payload: Buffer.from(JSON.stringify({ word: `word-${id}.` })), ...over })
}

export async function drain(fixture: OutboxFixture, target: Target): Promise<readonly RelayTurn[]> {
  const relay = createRelay({ outbox: fixture.store.outbox, targets: { '*': target }, backoffMsMax: 60_000 })
  const turns: RelayTurn[] = []
  for (;;) {
    const turn = await relay.relayOnce()
    if (turn.kind === 'idle') return turns
    turns.push(turn)
  }
}

/** Until nothing waits, as long as a wire needs to be whole again. */
export async function drainAll(fixture: OutboxFixture, target: Target): Promise<void> {
  await expect
    .poll(
      async () => {
        fixture.makeDue()
        await drain(fixture, target)
        return (await fixture.store.outbox.lag()).waiting
      },
      { timeout: 30_000 },
    )
    .toBe(0)
}

export function describeBrokerCases({ open, copies }: BrokerHarness): void {
  let fixture: OutboxFixture
  let broker: OpenBroker
  beforeEach(async () => {
    fixture = await openFixture()
    broker = await open()
  })
  afterEach(async () => {
    await broker.close()
    await fixture.close()
  })
  const storedIds = async (prefix = '') =>
    (await broker.stored()).map(({ id }) => id).filter(id => id.startsWith(prefix))

  describe('as a target of the relay', () => {
    it('stores the bytes and the headers of a message under its id', async () => {
      await fixture.append(order('m', { headers: { 'ce-type': 'order.paid', 'content-type': 'text/json' } }))
      expect(await drain(fixture, broker.target)).toMatchObject([{ delivered: 1 }])
      expect(await broker.stored()).toMatchObject([
        { id: 'm', text: '{"word":"word-m."}', headers: { 'ce-type': 'order.paid', 'content-type': 'text/json' } },
      ])
    })

    it('does not count as delivered what was not confirmed, and sends it again under its id', async () => {
      await fixture.append(order('m'))
      broker.cut('word-m.', 'reply')
      expect(await drain(fixture, broker.target)).toMatchObject([{ delivered: 0, failed: 1 }])
      await drainAll(fixture, broker.target)
      expect(await storedIds()).toEqual(Array.from({ length: copies }, () => 'm'))
    })

    it('sends nothing of an aggregate past a message that was lost', async () => {
      await fixture.append(...['a1', 'a2', 'a3'].map(id => order(id, { aggregate: 'a' })))
      broker.cut('word-a2.', 'request')
      expect(await drain(fixture, broker.target)).toMatchObject([{ delivered: 1, failed: 1 }])
      expect(await storedIds()).toEqual(['a1'])
      await drainAll(fixture, broker.target)
      expect(await storedIds()).toEqual(['a1', 'a2', 'a3'])
    })

    it('parks at once what the broker never accepts; others go on', async () => {
      const refused = broker.refused('bad')
      await fixture.append(
        { ...refused.message, aggregate: 'a' },
        order('after', { aggregate: 'a' }),
        ...['b', 'c', 'd', 'e'].map(id => order(id, { aggregate: id })),
      )
      await drain(fixture, broker.target)
      expect(await fixture.store.outbox.parked({ limit: 10 })).toMatchObject([
        { dedupId: 'bad', attempts: 1, cause: refused.cause },
      ])
      expect(await fixture.store.outbox.lag()).toMatchObject({ waiting: 1, parked: 1 })
      expect(new Set(await storedIds())).toEqual(new Set(['b', 'c', 'd', 'e']))
    })

    it('has many aggregates under way at once, and one message of each', async () => {
      const aggregates = await appendPairs(fixture)
      const watched = watching(broker.target)
      await drain(fixture, watched.target)
      expect(watched.most.ofOne).toBe(1)
      // More than the relay's own bound, which is 8.
      expect(watched.most.inAll).toBeGreaterThan(8)
      const stored = await storedIds()
      expect(stored).toHaveLength(400)
      for (const aggregate of aggregates) {
        expect(stored.filter(id => id.startsWith(`${aggregate}-`))).toEqual([`${aggregate}-1`, `${aggregate}-2`])
      }
    })
  })
}

/** Two messages of each of 200 aggregates, which are returned. */
async function appendPairs(fixture: OutboxFixture): Promise<readonly string[]> {
  const aggregates = Array.from({ length: 200 }, (_, index) => `g${index}`)
  for (const turn of [1, 2]) {
    await fixture.append(...aggregates.map(aggregate => order(`${aggregate}-${turn}`, { aggregate })))
  }
  return aggregates
}

/** Counts the deliveries that are under way. */
function watching(target: Target): { target: Target; most: { inAll: number; ofOne: number } } {
  const most = { inAll: 0, ofOne: 0 }
  const running: Message[] = []
  const deliver: Target['deliver'] = async (each, options) => {
    running.push(each)
    most.inAll = Math.max(most.inAll, running.length)
    most.ofOne = Math.max(most.ofOne, running.filter(({ aggregate }) => aggregate === each.aggregate).length)
    const result = await target.deliver(each, options)
    running.splice(running.indexOf(each), 1)
    return result
  }
  return { target: { ...target, deliver }, most }
}
