import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { sleep, systemClock } from '../ports/clock.ts'
import { silentTelemetry } from '../ports/telemetry.ts'
import { type Consuming, type Delivery, startConsuming } from './consuming.ts'

let consuming: Consuming | undefined
afterEach(() => consuming?.stop({ timeoutMs: 0 }))

function start(
  concurrency: number,
  receive: () => Promise<void>,
  redriveOne: () => Promise<boolean> = async () => false,
): Consuming {
  consuming = startConsuming(
    {
      ...{ operation: 'orders.book', leaseMs: 30_000, clock: systemClock, telemetry: silentTelemetry },
      async receive() {
        await receive()
        return { kind: 'done' }
      },
      redriveOne,
    },
    concurrency,
  )
  return consuming
}

const message = { source: 'orders', id: '1', data: {} }
const never = new Promise<void>(() => {})
const delivery = (settle: () => unknown): Delivery => ({ message, renew() {}, settle, abandon() {} })

/** How many are taken, one after the other, until there is no room. */
async function taken(on: Consuming, of: Delivery, most: number): Promise<number> {
  let count = 0
  void (async () => {
    for (; count < most; count++) await on.take(of)
  })()
  for (let turns = 0; turns < most * 2; turns++) await turn()
  return count
}

it('takes the next message when the outcome of one is stored, and does not wait for its acknowledgement', async () => {
  const on = start(1, async () => undefined)
  expect(
    await taken(
      on,
      delivery(() => never),
      10,
    ),
  ).toBe(10)
})

it('collects no messages when nothing is confirmed any more', async () => {
  const on = start(2, async () => undefined)
  // The next one was begun, and is not counted yet.
  expect(
    await taken(
      on,
      delivery(() => never),
      500,
    ),
  ).toBe(65)
})

it('runs no more messages at the same time than it was told, and ends the wait for room when it is stopped', async () => {
  let running = 0
  const on = start(3, async () => {
    running += 1
    await never
  })
  expect(
    await taken(
      on,
      delivery(() => undefined),
      10,
    ),
  ).toBe(2)
  expect(running).toBe(3)
  const waiting = on.take(delivery(() => undefined))
  expect(await on.stop({ timeoutMs: 0 })).toEqual({ drained: false })
  await waiting
})

it('has as many wait for its end as there are partitions, without a warning of a leak', async () => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  process.on('warning', onWarning)
  const on = start(1, async () => undefined)
  for (let partition = 0; partition < 50; partition++) void sleep(systemClock, 60_000, on.stopping)
  await turn()
  await on.stop()
  process.off('warning', onWarning)
  expect(warnings).toEqual([])
})

it('begins nothing once it is stopped, also of what its broker had sent before', async () => {
  let received = 0
  const on = start(2, async () => void (received += 1))
  expect(await on.stop()).toEqual({ drained: true })
  await on.take(delivery(() => undefined))
  await on.takeAlone(delivery(() => undefined))
  expect(received).toBe(0)
})

it('runs marked messages one by one until it is stopped, however many there are', async () => {
  let redriven = 0
  let enough = () => {}
  const some = new Promise<void>(resolve => (enough = resolve))
  const on = start(
    1,
    async () => undefined,
    async () => {
      redriven += 1
      if (redriven === 3) enough()
      await turn()
      return true
    },
  )
  await some
  expect(await on.stop({ timeoutMs: 1_000 })).toEqual({ drained: true })
  const before = redriven
  for (let turns = 0; turns < 10; turns++) await turn()
  expect(redriven).toBe(before)
})
