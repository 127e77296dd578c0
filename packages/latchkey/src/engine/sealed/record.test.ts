import { expect, it } from 'vitest'
import { underA } from '../../../test/sealed/keys.ts'
import { systemClock } from '../../ports/clock.ts'
import type { Outcome } from '../../ports/outcome.ts'
import type { KeyRecord } from '../../ports/store.ts'
import { createKeyring } from './keyring.ts'
import { sealOutcome } from './outcome.ts'
import { recordOpener } from './record.ts'

const ring = createKeyring(underA, systemClock)
const openRecord = recordOpener(ring)
const outcome: Outcome = { status: 201, headers: [['etag', '"7"']], body: Buffer.from('paid'), version: 1 }
const id = '6f1c1d0e-0000-4000-8000-000000000001'

function record(over: { fence: number; outcome: Outcome; expired?: boolean }): KeyRecord {
  return {
    id,
    scope: 'acme',
    operation: 'pay',
    state: 'completed',
    recovery: 'hold',
    fingerprint: new Uint8Array(32),
    claimId: id,
    attempts: 1,
    crashes: 0,
    leaseLeftMs: 0,
    dueInMs: 0,
    gone: false,
    parked: false,
    createdAtMs: 0,
    ageMs: 0,
    completedAtMs: 0,
    expiresAtMs: 0,
    description: undefined,
    lastErrorCode: undefined,
    expired: false,
    ...over,
  }
}

it('opens an outcome under the fence of its grant, and under no other', async () => {
  const sealed = await sealOutcome(ring, { id, fence: 2 }, outcome)
  expect(await openRecord(record({ fence: 2, outcome: sealed }))).toMatchObject({ state: 'completed', outcome })
  for (const fence of [1, 3]) {
    const why = `its outcome belongs to the grant with fence 2, and the row has ${fence}`
    expect(await openRecord(record({ fence, outcome: sealed }))).toMatchObject({ state: 'unreadable', why })
  }
})

it('opens an outcome from evidence under any fence: it was not known when it was sealed', async () => {
  const sealed = await sealOutcome(ring, { id, fence: undefined }, outcome)
  expect(await openRecord(record({ fence: 7, outcome: sealed }))).toMatchObject({ outcome })
})

it('takes nothing for plain that carries the mark of a sealed outcome', async () => {
  const imitation = { ...outcome, headers: [['', '']] as const }
  expect(await openRecord(record({ fence: 1, outcome: imitation }))).toMatchObject({ state: 'unreadable' })
})

it('counts what is expired as absent, also if it does not open', async () => {
  const sealed = await sealOutcome(ring, { id, fence: 1 }, outcome)
  const expired = await openRecord(record({ fence: 2, outcome: sealed, expired: true }))
  expect(expired).toMatchObject({ state: 'completed', expired: true, outcome: undefined })
})
