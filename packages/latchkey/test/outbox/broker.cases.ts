/** What a target must do on every broker, with the real relay over a real outbox. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Target } from '../../src/outbox/index.ts'
import type { Message } from '../../src/ports/outbox.ts'
import { type BrokerHarness, drain, drainAll, type OpenBroker, order } from './broker-fixture.ts'
import { cuts, publishInStorm, stormLimitMs } from './broker-storm.ts'
import { openFixture, type OutboxFixture } from './fixture.ts'

/** Opened anew for each case. */
interface Scene {
  readonly fixture: OutboxFixture
  readonly broker: OpenBroker
  readonly storedIds: () => Promise<string[]>
}

export function describeBrokerCases({ open, copies }: BrokerHarness): void {
  let scene: Scene
  beforeEach(async () => {
    const [fixture, broker] = [await openFixture(), await open()]
    scene = { fixture, broker, storedIds: async () => (await broker.stored()).map(({ id }) => id) }
  })
  afterEach(async () => {
    await scene.broker.close()
    await scene.fixture.close()
  })
  describe('as a target of the relay', () => {
    singleMessages(() => scene, copies)
    manyMessages(() => scene, copies)
  })
}

function singleMessages(scene: () => Scene, copies: number): void {
  it('stores the bytes and the headers of a message under its id', async () => {
    const { fixture, broker } = scene()
    await fixture.append(order('m', { headers: { 'ce-type': 'order.paid', 'content-type': 'text/json' } }))
    expect(await drain(fixture, broker.target)).toMatchObject([{ delivered: 1 }])
    expect(await broker.stored()).toMatchObject([
      { id: 'm', text: '{"word":"word-m."}', headers: { 'ce-type': 'order.paid', 'content-type': 'text/json' } },
    ])
  })

  it('does not count as delivered what was not confirmed, and sends it again under its id', async () => {
    const { fixture, broker, storedIds } = scene()
    await fixture.append(order('m'))
    broker.cut('word-m.', 'reply')
    expect(await drain(fixture, broker.target)).toMatchObject([{ delivered: 0, failed: 1 }])
    await drainAll(fixture, broker.target)
    expect(await storedIds()).toEqual(Array.from({ length: copies }, () => 'm'))
  })

  it('sends nothing of an aggregate past a message that was lost', async () => {
    const { fixture, broker, storedIds } = scene()
    await fixture.append(...['a1', 'a2', 'a3'].map(id => order(id, { aggregate: 'a' })))
    broker.cut('word-a2.', 'request')
    expect(await drain(fixture, broker.target)).toMatchObject([{ delivered: 1, failed: 1 }])
    expect(await storedIds()).toEqual(['a1'])
    await drainAll(fixture, broker.target)
    expect(await storedIds()).toEqual(['a1', 'a2', 'a3'])
  })

  it('parks at once what the broker never accepts; others go on', async () => {
    const { fixture, broker, storedIds } = scene()
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
}

function manyMessages(scene: () => Scene, copies: number): void {
  const storm = async () => {
    const { fixture, broker, storedIds } = scene()
    const { aggregates, noticed } = await publishInStorm(fixture, broker)
    expect(noticed).toBe(cuts)
    const stored = await storedIds()
    const all = aggregates.flat()
    expect(new Set(stored)).toEqual(new Set(all))
    // A confirm that was lost leaves a second copy, unless the broker recognises the id.
    expect(stored.length > all.length).toBe(copies > 1)
    for (const ids of aggregates) expect([...new Set(stored.filter(id => ids.includes(id)))]).toEqual(ids)
  }
  it('loses nothing and keeps every order while its connection is cut again and again', storm, stormLimitMs)

  it('has many aggregates under way at once, and one message of each', async () => {
    const { fixture, broker, storedIds } = scene()
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
