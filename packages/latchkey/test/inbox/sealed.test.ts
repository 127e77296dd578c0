import { expect, it } from 'vitest'
import { inbox, type InboxMessage, parkedMessages } from '../../src/inbox/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { fromAToB, underA, underB } from '../sealed/keys.ts'
import { act, quiet } from './fixture.ts'

const marker = 'confidential'
const message: InboxMessage = { source: 'orders', id: '1', data: { note: marker }, headers: { 'x-user': marker } }

function opened(store: ReturnType<typeof memoryStore>, encryption: typeof underA | undefined) {
  const latchkey = quiet(store, encryption === undefined ? {} : { encryption })
  const operation = latchkey.guarded('orders.book', { onFailure: 'rerun' })
  return { latchkey, parked: parkedMessages(latchkey), ...inbox(operation, { consumer: 'billing', attemptsMax: 1 }) }
}

const fails = () => Promise.reject(new Error('no'))

it('seals the headers and the payload of a parked message, and runs what it opens', async () => {
  const store = memoryStore()
  const { receive, parked, redriven, latchkey } = opened(store, underA)
  const result = await receive(message, fails)
  const id = result.kind === 'parked' ? result.id : ''
  const below = await store.inbox.inspect(id)
  expect(Buffer.from(below.message?.payload ?? []).toString('latin1')).not.toContain(marker)
  expect(JSON.stringify(below.message?.headers)).not.toContain(marker)
  expect((await parked.inspect(id)).message?.headers).toEqual({ 'x-user': marker })

  // Under the next key, and then without the first.
  expect(await opened(store, fromAToB).latchkey.rewrap()).toMatchObject({ rewritten: 1, unreadable: [] })
  const later = opened(store, underB)
  await later.parked.redrive(id, act)
  const runs: InboxMessage[] = []
  expect(await later.redriven((_: unknown, given: InboxMessage) => runs.push(given))).toMatchObject([
    { result: { kind: 'done' } },
  ])
  expect(runs).toMatchObject([message])
  expect(await redriven(fails)).toEqual([])
  await latchkey.close()
})

it('does not run a parked message that cannot be opened', async () => {
  const store = memoryStore()
  const result = await opened(store, underA).receive(message, fails)
  const id = result.kind === 'parked' ? result.id : ''
  const blind = opened(store, underB)
  expect((await blind.parked.inspect(id)).message).toMatchObject({ unreadable: expect.stringContaining('key a') })
  await blind.parked.redrive(id, act)
  let runs = 0
  expect(await blind.redriven(() => void (runs += 1))).toMatchObject([
    { result: { kind: 'parked', cause: 'attempts' } },
  ])
  expect(runs).toBe(0)
  const seeing = opened(store, fromAToB)
  await seeing.parked.redrive(id, act)
  expect(await seeing.redriven(() => void (runs += 1))).toMatchObject([{ result: { kind: 'done' } }])
  expect(runs).toBe(1)
})

it('takes no header of a producer for the mark of an encrypted message', async () => {
  const store = memoryStore()
  const { receive, parked } = opened(store, undefined)
  const result = await receive({ ...message, id: undefined, headers: { '': 'x', a: 'b' } }, fails)
  const found = await parked.inspect(result.kind === 'parked' ? result.id : '')
  expect(found.message).toMatchObject({ headers: { a: 'b' } })
})
