/** What a broker is told where a message can neither be acknowledged nor run: the same on every broker, with a real one. */
import { expect, it } from 'vitest'
import { inbox, type InboxMessage } from '../../src/inbox/index.ts'
import type { Store } from '../../src/ports/store.ts'
import type { MemoryStore } from '../../src/stores/memory/index.ts'
import { allSettledBy, type ConsumerBroker, eventually, type Order, quiet } from './consumer-broker.ts'

const act = { by: 'ops', reason: 'the ledger was read' }
const rerun = { onFailure: 'rerun', leaseMs: 10_000 } as const
const hold = { onFailure: 'hold', leaseMs: 10_000 } as const
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

export function defineDecisions(broker: () => ConsumerBroker, store: () => MemoryStore): void {
  defineWaits(broker, store)
  defineUnknowns(broker, store)
}

function defineWaits(broker: () => ConsumerBroker, store: () => MemoryStore): void {
  it('waits for a delivery that is under way elsewhere, and asks for it now and then only', async () => {
    let asked = 0
    const claim: Store['claim'] = request => ((asked += 1), store().claim(request))
    const here = quiet({ ...store(), claim })
    const options = { consumer: 'elsewhere', backoffMs: 800 }
    const seen: InboxMessage<Order>[] = []
    const subscription = await broker().consume(here.guarded('orders.book', rerun), options, (_, message) => {
      seen.push(message)
      throw new Error('out of stock')
    })
    await broker().publish('m-1', { order: 'm-1' })
    await eventually(() => expect(seen).toHaveLength(1))
    const [first] = seen
    if (first === undefined) return
    let release = () => {}
    const released = new Promise<void>(resolve => (release = resolve))
    let isTaken = false
    const other = inbox(quiet(store()).guarded('orders.book', rerun), options)
    const takenOver = (async () => {
      while (!isTaken) {
        await other.receive(first, () => ((isTaken = true), released))
        await pause(10)
      }
    })()
    await eventually(() => expect(isTaken).toBe(true))
    asked = 0
    await pause(3_000)
    expect(asked).toBeGreaterThan(0)
    expect(asked).toBeLessThan(8)
    release()
    await takenOver
    await allSettledBy(broker())
    expect(seen).toHaveLength(1)
    await subscription.stop({ timeoutMs: 1_000 })
    await here.close()
  })
}

function defineUnknowns(broker: () => ConsumerBroker, store: () => MemoryStore): void {
  it('runs an unknown message again, or never, as its row is settled', async () => {
    const latchkey = quiet(store())
    const options = { consumer: 'holding', backoffMs: 50, backoffMsMax: 500 }
    const ran: string[] = []
    const operation = latchkey.guarded('orders.charge', hold)
    const subscription = await broker().consume(operation, options, (_, { data: { order } }) => {
      ran.push(order)
      if (ran.filter(each => each === order).length === 1) throw new Error('the answer was lost')
    })
    const unknown = async () => {
      const { records } = await latchkey.list({ scope: 'holding' })
      const found = records.filter(({ state }) => state === 'unknown')
      expect(found).toHaveLength(1)
      return found[0]?.id ?? ''
    }
    await broker().publish('m-1', { order: 'm-1' })
    await eventually(unknown)
    // Long enough for several deliveries.
    await pause(1_500)
    expect(ran).toEqual(['m-1'])
    await latchkey.settle({ id: await unknown() }, { kind: 'never-happened' }, act)
    await eventually(() => expect(ran).toEqual(['m-1', 'm-1']))
    await broker().publish('m-2', { order: 'm-2' })
    await eventually(unknown)
    await latchkey.settle({ id: await unknown() }, { kind: 'happened', status: 204, json: undefined }, act)
    await allSettledBy(broker())
    expect(ran).toEqual(['m-1', 'm-1', 'm-2'])
    await subscription.stop({ timeoutMs: 1_000 })
    await latchkey.close()
  })

  it('is delivered a message again whose outcome the store did not take, and does not run it twice', async () => {
    let isDown = true
    let asked = 0
    const claim: Store['claim'] = request => ((asked += 1), store().claim(request))
    const complete: Store['complete'] = (...given) =>
      isDown ? Promise.reject(new Error('connection refused')) : store().complete(...given)
    const shaky = quiet({ ...store(), claim, complete })
    const options = { consumer: 'unstored', backoffMs: 50, backoffMsMax: 500 }
    let runs = 0
    const operation = shaky.guarded('orders.charge', { ...hold, leaseMs: 1_000 })
    const subscription = await broker().consume(operation, options, () => void (runs += 1))
    await broker().publish('m-1', { order: 'm-1' })
    // The second time, it was not acknowledged after the first.
    await eventually(() => expect(asked).toBeGreaterThan(1))
    isDown = false
    await allSettledBy(broker())
    expect(runs).toBe(1)
    await subscription.stop({ timeoutMs: 1_000 })
    await shaky.close()
  })
}
