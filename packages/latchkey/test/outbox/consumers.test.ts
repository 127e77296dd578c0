import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import { createRelay, functionTarget, type Target } from '../../src/outbox/index.ts'
import { type OutboxFixture, message, openFixture } from './fixture.ts'

let fixture: OutboxFixture
beforeEach(async () => {
  fixture = await openFixture()
})
afterEach(() => fixture.close())

/** A consumer's inbox is a separate guarded operation, keyed by the message's dedup id. */
function consumer(name: string, handle: () => Promise<void> | void): Target {
  const latchkey = createLatchkey({ store: fixture.store, scope: () => 'consumers' })
  const inbox = latchkey.guarded(name, { onFailure: 'rerun' })
  return functionTarget(({ dedupId }) => inbox.run({ scope: 'consumers', key: dedupId, input: null }, handle))
}

const relay = (target: Target) => createRelay({ outbox: fixture.store.outbox, targets: { orders: target } })

it('keeps a message whose consumer failed, and delivers it again', async () => {
  let runs = 0
  const target = consumer('mailer', () => {
    runs += 1
    if (runs === 1) throw new Error('the mail server is down')
  })
  await fixture.append(message('m'))
  expect(await relay(target).relayOnce()).toMatchObject({ delivered: 0, failed: 1 })
  fixture.makeDue()
  expect(await relay(target).relayOnce()).toMatchObject({ delivered: 1 })
  expect(runs).toBe(2)
})

it('lets each of two consumers process one message once, however often it is delivered', async () => {
  const seen: string[] = []
  const both = ['mailer', 'ledger'].map(name => consumer(name, () => void seen.push(name)))
  const target = functionTarget(async (each, options) => {
    for (const one of both) await one.deliver(each, options)
  })
  await fixture.append(message('m'))
  await relay(target).relayOnce()
  await fixture.append(message('m'))
  await relay(target).relayOnce()
  expect(seen).toEqual(['mailer', 'ledger'])
})

it('does not count a copy as done that arrives while the first is being processed', async () => {
  let finish = () => {}
  let begin = () => {}
  const begun = new Promise<void>(resolve => (begin = resolve))
  const target = consumer('mailer', () => {
    begin()
    return new Promise<void>(resolve => (finish = resolve))
  })
  const deliver = () =>
    target.deliver(
      { ...message('m'), lane: 0, position: '1', attempts: 0, crashes: 0, createdAtMs: 0 },
      { signal: new AbortController().signal },
    )
  const first = deliver()
  await begun
  await expect(deliver()).rejects.toMatchObject({ code: 'in-progress' })
  finish()
  expect(await first).toMatchObject({ kind: 'delivered' })
})
