/** Rows whose fingerprint an older version wrote, met by requests of this one. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { fingerprintInput } from '../../../src/engine/fingerprint/fingerprint.ts'
import { engine } from '../../../src/engine/internal.ts'
import type { Claim, Recovery, Store } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { answered, executeRequest, latchkeyOn, operationName, type TestLatchkey, told } from '../fixture.ts'

const hourMs = 3_600_000
const same = fingerprintInput({ b: 1, a: null })
const other = fingerprintInput({ b: 2, a: null })
/** Of the same input, as version 1 stored it. */
const stored = Buffer.from(
  '01b054326e9b01f72a01197416c38e185ae3b0c44298fc1c14e3b0c44298fc1c14e3b0c44298fc1c146ed135f5b3eb49aae3b0c44298fc1c14',
  'hex',
)

let store: Store
let latchkey: TestLatchkey
let runs = 0
beforeEach(() => {
  store = memoryStore()
  latchkey = latchkeyOn(store)
  runs = 0
})
afterEach(() => latchkey.close())

async function own(key: string, fingerprint: Uint8Array, recovery: Recovery = 'hold'): Promise<Claim> {
  const { identity } = executeRequest(key)
  const granted = await store.claim({
    ...{ identity, fingerprint, recovery, claimId: randomUUID(), leaseMs: hourMs, expiresInMs: hourMs },
    description: undefined,
  })
  if (granted.kind !== 'won') throw new Error(granted.kind)
  return granted.claim
}
const ask = async (key: string, fingerprint: Uint8Array) => {
  const operation = latchkey.guarded(operationName, { onFailure: 'rerun' })
  return operation[engine].execute(executeRequest(key, { fingerprint }), async () => answered(200 + (runs += 1)))
}

it('are replayed to the same request, and refused to another with what differs', async () => {
  const outcome = { status: 201, headers: [], body: Buffer.from('{}'), version: 0 }
  await store.complete(await own('done', stored), outcome, hourMs)
  expect(told(await ask('done', same))).toBe('replayed 201')
  const refused = await ask('done', other)
  expect(refused).toMatchObject({ kind: 'refused', refusal: { code: 'key-reused', differs: ['body'] } })
  expect(runs).toBe(0)
})

it('are granted again to the same request only', async () => {
  await store.fail(await own('free', stored, 'rerun'), { to: 'failed_retryable', errorCode: 'E', dueInMs: 0 })
  expect(told(await ask('free', other))).toBe('refused key-reused')
  expect(told(await ask('free', same))).toBe('executed 201 yes')
  expect(told(await ask('free', same))).toBe('replayed 201')
  expect(runs).toBe(1)
})

it('are refused for now where the version is not known, whoever asks', async () => {
  const later = Buffer.from(stored)
  later[0] = 9
  const claim = await own('later', later, 'rerun')
  await store.fail(claim, { to: 'failed_retryable', errorCode: 'E', dueInMs: 0 })
  for (const fingerprint of [same, other])
    expect(told(await ask('later', fingerprint))).toBe('refused fingerprint-version')
  expect(runs).toBe(0)
})
