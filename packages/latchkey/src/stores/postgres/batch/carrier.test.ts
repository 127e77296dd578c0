import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { systemClock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Batch } from '../connection/prepared.ts'
import type { Send, Sent } from '../connection/batch-sender.ts'
import { type CarriedCall, type Carrier, openCarrier } from './carrier.ts'

interface Message {
  readonly parts: readonly string[]
  answer(): void
  fail(code: string): void
}

interface NamedBatch extends Batch {
  readonly items: readonly string[]
}

const options = {
  limits: { sizeMax: 100, openMax: 1_000, followersMax: 1_000, waitMsMax: 60_000, shareMsMax: 90_000 },
  clock: systemClock,
}

/** Each message is open until the test answers it. */
function carrier(senders = 1): { readonly messages: Message[]; readonly carry: Carrier['carry'] } {
  const messages: Message[] = []
  const send: Send = batches =>
    new Promise(resolve => {
      const all = batches as readonly NamedBatch[]
      const failed = (code: string): Sent => {
        const cause = Object.assign(new Error(code), { code, severity: 'ERROR' })
        return { kind: 'failed', error: new LatchkeyError('store-unavailable', code, { cause }) }
      }
      messages.push({
        parts: all.map(({ items }) => items.join(' ')),
        answer: () =>
          resolve(all.map(({ items }) => ({ kind: 'answered', answer: { command: '', rows: [items], count: 0 } }))),
        fail: code => resolve(all.map(() => failed(code))),
      })
    })
  return {
    messages,
    carry: openCarrier(
      Array.from({ length: senders }, () => send),
      options,
    ).carry,
  }
}

function kind(name: string, over: Partial<CarriedCall<string, string>> = {}): CarriedCall<string, string> {
  const many = (items: readonly string[]): NamedBatch => ({
    ...{ items, statement: { name, text: '' }, parameterCount: 0 },
    write() {},
    values: () => [],
    plain: () => [],
  })
  return {
    name,
    keyOf: item => item,
    sendAlone: item => Promise.resolve(`${item} alone`),
    many,
    resultsOf: (items, { rows: [sent = []] }) => items.map((item, at) => `${item}=${String(sent[at])}`),
    ...over,
  }
}

const nextMessage = async (messages: readonly Message[], at: number): Promise<Message> => {
  for (let look = 0; look < 1_000 && messages.length <= at; look += 1) await pause(2)
  expect(messages.length).toBeGreaterThan(at)
  // Just compared.
  return messages[at] as Message
}

it('sends the calls of all kinds in one message, in the order of their queues, and answers the last first', async () => {
  const { messages, carry } = carrier()
  const [claim, complete] = [carry(kind('claim')), carry(kind('complete'))]
  const order: string[] = []
  const noted = (answer: Promise<string>) => answer.then(text => (order.push(text), text))
  const answers = Promise.all([complete('c'), claim('a'), claim('b')].map(noted))
  ;(await nextMessage(messages, 0)).answer()
  expect(await answers).toEqual(['c=c', 'a=a', 'b=b'])
  expect(messages.map(({ parts }) => parts)).toEqual([['a b', 'c']])
  expect(order).toEqual(['c=c', 'a=a', 'b=b'])
})

it('sends the parts of a refused message again one by one, and then the calls of the one that is refused', async () => {
  const { messages, carry } = carrier()
  let refusals = 0
  const claim = carry(kind('claim', { refused: () => void (refusals += 1) }))
  const complete = carry(kind('complete'))
  const answers = Promise.all([claim('a'), claim('bad'), complete('c')].map(answer => answer.catch(String)))
  ;(await nextMessage(messages, 0)).fail('22008')
  ;(await nextMessage(messages, 1)).answer()
  ;(await nextMessage(messages, 2)).fail('22008')
  expect(await answers).toEqual(['a alone', 'bad alone', 'c=c'])
  expect(messages.map(({ parts }) => parts)).toEqual([['a bad', 'c'], ['c'], ['a bad']])
  expect(refusals).toBe(1)
})

it('repeats nothing of a message whose answer was lost, and takes the next one', async () => {
  const { messages, carry } = carrier()
  const [complete, claim] = [carry(kind('complete')), carry(kind('claim'))]
  const lost = Promise.allSettled([claim('a'), complete('c')])
  ;(await nextMessage(messages, 0)).fail('57P01')
  expect(await lost).toMatchObject([{ reason: { message: '57P01' } }, { reason: { message: '57P01' } }])
  const next = claim('b')
  ;(await nextMessage(messages, 1)).answer()
  expect(await next).toBe('b=b')
})

it('goes on after an answer that cannot be read', async () => {
  const { messages, carry } = carrier()
  const unreadable = () => {
    throw new Error('unreadable')
  }
  const broken = carry(kind('broken', { resultsOf: unreadable }))
  const claim = carry(kind('claim'))
  const answers = Promise.allSettled([broken('x'), claim('a')])
  ;(await nextMessage(messages, 0)).answer()
  expect(await answers).toMatchObject([{ reason: { message: 'unreadable' } }, { value: 'a=a' }])
  const next = claim('b')
  ;(await nextMessage(messages, 1)).answer()
  expect(await next).toBe('b=b')
})

it('sends a call beside a small message that is under way, and not beside a large one', async () => {
  const { messages, carry } = carrier(2)
  const claim = carry(kind('claim'))
  const first = claim('a')
  await nextMessage(messages, 0)
  const crowd = Array.from({ length: 20 }, (_, at) => claim(`crowd-${at}`))
  const large = await nextMessage(messages, 1)
  const late = claim('late')
  messages[0]?.answer()
  expect(await first).toBe('a=a')
  // A turn of the event loop in which it could have left.
  await pause(20)
  expect(messages).toHaveLength(2)
  large.answer()
  await Promise.all(crowd)
  ;(await nextMessage(messages, 2)).answer()
  expect(await late).toBe('late=late')
})

it('asks the statement for many where the one for a single call does not know', async () => {
  const { messages, carry } = carrier()
  const single = kind('one')
  const claim = carry(
    kind('claim', {
      one: item => single.many([`one ${item}`]),
      resultOf: item => (item === 'new' ? 'won' : undefined),
    }),
  )
  const won = claim('new')
  ;(await nextMessage(messages, 0)).answer()
  expect(await won).toBe('won')
  const seen = claim('old')
  ;(await nextMessage(messages, 1)).answer()
  ;(await nextMessage(messages, 2)).answer()
  expect(await seen).toBe('old=old')
  expect(messages.map(({ parts }) => parts)).toEqual([['one new'], ['one old'], ['old']])
})

it('sends nothing else with the statement for a single call, which may wait for long', async () => {
  const { messages, carry } = carrier()
  const single = kind('one')
  const complete = carry(kind('complete'))
  const claim = carry(kind('claim', { one: item => single.many([`one ${item}`]), resultOf: () => 'won' }))
  const answers = Promise.all([complete('c'), claim('a')])
  ;(await nextMessage(messages, 0)).answer()
  expect(await answers).toEqual(['c=c', 'a=a'])
  expect(messages.map(({ parts }) => parts)).toEqual([['c', 'a']])
})

it('goes on without a message that is held up, however many there are', async () => {
  const { messages, carry } = carrier()
  const claim = carry(kind('claim'))
  const held: Promise<string>[] = []
  for (const [at, item] of ['a', 'b', 'c'].entries()) {
    held.push(claim(item))
    await nextMessage(messages, at)
  }
  const next = claim('next')
  ;(await nextMessage(messages, 3)).answer()
  expect(await next).toBe('next=next')
  for (const message of messages) message.answer()
  expect(await Promise.all(held)).toEqual(['a=a', 'b=b', 'c=c'])
})
