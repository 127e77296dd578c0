import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import type { GuardedOptions, KeyFormat } from '../../src/engine/options.ts'
import type { Telemetry } from '../../src/ports/telemetry.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { leapingClock } from './fake-clock.ts'
import {
  act,
  answered,
  executeRequest,
  type FaultyStore,
  faultyStore,
  idOf,
  latchkeyOn,
  losesReply,
  operationName,
  recordingTelemetry,
  rejects,
  rowOf,
  runRequest,
  type TestLatchkey,
  told,
} from './fixture.ts'

let clock: ReturnType<typeof leapingClock>
let faulty: FaultyStore
const open: TestLatchkey[] = []
beforeEach(() => {
  clock = leapingClock()
  faulty = faultyStore(memoryStore({ clock }))
})
afterEach(async () => {
  for (const latchkey of open.splice(0)) await latchkey.close()
})

function guarded(options: Partial<GuardedOptions> = {}, telemetry?: Telemetry) {
  const latchkey = latchkeyOn(faulty.store, { storeTimeoutMs: 300, ...(telemetry === undefined ? {} : { telemetry }) })
  open.push(latchkey)
  return latchkey.guarded(operationName, { onFailure: 'hold', ...options })
}

const throws = (): never => {
  throw new Error('a hook with a bug')
}

describe('a hook that throws changes nothing', () => {
  it('as upgrade: the outcome is replayed as stored', async () => {
    await guarded().run(runRequest('k'), () => 'first')
    expect(await guarded({ outcomeVersion: 2, upgrade: throws }).run(runRequest('k'), () => 'again')).toBe('first')
  })

  it('as describe: the row has no description', async () => {
    expect(await guarded({ describe: throws }).run(runRequest('k'), () => 'first')).toBe('first')
    expect(await rowOf(faulty.inner, 'k')).toMatchObject({ state: 'completed', description: undefined })
  })

  it('as storeStatus: the answer is kept as by default', async () => {
    expect(
      told(await guarded({ storeStatus: throws })[engine].execute(executeRequest('k'), async () => answered(201))),
    ).toBe('executed 201 yes')
    expect(
      told(await guarded({ storeStatus: throws })[engine].execute(executeRequest('k'), async () => answered(202))),
    ).toBe('replayed 201')
  })

  it('as telemetry, in every method and every state', async () => {
    const broken = { count: throws, observe: throws, report: throws, trace: throws }
    const operation = guarded({}, broken)
    expect(await operation.run(runRequest('k'), () => 'first')).toBe('first')
    expect(await operation.run(runRequest('k'), () => 'again')).toBe('first')
    await expect(operation.run(runRequest('k', { amount: 2 }), () => 'other')).rejects.toMatchObject({
      code: 'key-reused',
    })
    faulty.break('claim', [losesReply])
    expect(await operation.run(runRequest('lost'), () => 'found')).toBe('found')
    await expect(operation.run(runRequest('throws'), throws)).rejects.toMatchObject({ code: 'outcome-unknown' })
  })

  it('as authorizeReplay: the replay is refused and the row stays', async () => {
    const operation = guarded()
    await operation[engine].execute(executeRequest('k'), async () => answered(201))
    for (const authorizeReplay of [throws, () => Promise.reject(new Error('later')), async () => false]) {
      const request = executeRequest('k', { authorizeReplay })
      expect(told(await operation[engine].execute(request, async () => answered(202)))).toBe(
        'refused replay-not-authorized',
      )
    }
    const allowed = executeRequest('k', { authorizeReplay: async record => record.operation === operationName })
    expect(told(await operation[engine].execute(allowed, async () => answered(202)))).toBe('replayed 201')
  })
})

describe('a hook', () => {
  it('upgrades an outcome of an older version, not one of its own', async () => {
    const upgrade = (outcome: { status: number }) => ({
      ...outcome,
      status: 200,
      headers: [],
      body: Buffer.from('"upgraded"'),
      version: 2,
    })
    await guarded().run(runRequest('old'), () => 'first')
    expect(await guarded({ outcomeVersion: 2, upgrade }).run(runRequest('old'), () => 'again')).toBe('upgraded')
    await guarded({ outcomeVersion: 2, upgrade }).run(runRequest('new'), () => 'second')
    expect(await guarded({ outcomeVersion: 2, upgrade }).run(runRequest('new'), () => 'again')).toBe('second')
  })

  it('describes a row in at most 80 characters', async () => {
    await guarded({ describe: input => `${JSON.stringify(input)} ${'x'.repeat(200)}` }).run(runRequest('k'), () => 1)
    const { description } = await rowOf(faulty.inner, 'k')
    expect(description).toHaveLength(80)
    expect(description).toMatch(/^\{"amount":1\} x/)
  })

  it('does not tell a caller who may not know that a row exists, before the handler’s rights are checked', async () => {
    const operation = guarded()
    await operation[engine].execute(executeRequest('k'), async () => answered(201))
    const other = executeRequest('k', {
      fingerprint: executeRequest('other').fingerprint,
      authorizeReplay: async () => false,
    })
    expect(told(await operation[engine].execute(other, async () => answered(202)))).toBe(
      'refused replay-not-authorized',
    )
  })
})

describe('a raw key', () => {
  const key = 'secret-key-7Qz'

  it('is in no telemetry call and no error, whatever happens', async () => {
    const telemetry = recordingTelemetry()
    const operation = guarded({ leaseMs: 5_000 }, telemetry)
    const errors: unknown[] = []
    const attempt = (input: unknown, handler: () => Promise<string> | string) =>
      operation.run(runRequest(key, input), handler).catch((error: unknown) => errors.push(error))

    await attempt(1, () => 'first')
    await attempt(1, () => 'replay')
    await attempt(2, () => 'misuse')
    await open.at(-1)?.forget({ id: idOf(key) }, act)
    await attempt(1, throws)
    await attempt(1, () => 'unknown')
    await open.at(-1)?.settle({ id: idOf(key) }, { kind: 'never-happened' }, act)
    faulty.break('complete', rejects)
    await attempt(1, () => 'not stored')
    faulty.mend()
    await attempt(1, () => 'in progress')
    clock.leap(5_000)
    await attempt(1, () => 'dead lease')
    for (const method of ['claim', 'read', 'releaseMany'] as const) faulty.break(method, rejects)
    await attempt(1, () => 'store down')
    await operation.run({ scope: [], key, input: 1 }, () => 1).catch((error: unknown) => errors.push(error))
    await operation
      .run({ scope: 'acme', key: key.repeat(50), input: 1 }, () => 1)
      .catch((error: unknown) => errors.push(error))

    const codes = errors.map(error => (error as { code: string }).code)
    expect(new Set(codes)).toEqual(
      new Set(['key-reused', 'outcome-unknown', 'in-progress', 'store-unavailable', 'scope-unresolved', 'invalid-key']),
    )
    expect(telemetry.told.length).toBeGreaterThan(10)
    expect(inspect([telemetry.told, errors], { depth: null })).not.toContain(key)
    expect(inspect(telemetry.told, { depth: null })).toContain(idOf(key))
  })

  it('is not in the row either', async () => {
    await guarded().run(runRequest(key), () => 1)
    expect(inspect(await faulty.inner.inspect(idOf(key)), { depth: null })).not.toContain(key)
  })
})

describe('the format of a key', () => {
  it.each(['', 'x'.repeat(256)])('refuses a key of the wrong length', async key => {
    await expect(guarded().run(runRequest(key), () => 1)).rejects.toMatchObject({ code: 'invalid-key' })
    expect((await faulty.inner.list({ limit: 10 })).records).toEqual([])
  })

  it('matches the whole key, and a pattern with the flag g every time', async () => {
    const operation = guarded({ keyFormat: { pattern: /[a-z]+/g } })
    for (const key of ['abc', 'abc', 'abc']) expect(await operation.run(runRequest(key), () => 1)).toBe(1)
    await expect(operation.run(runRequest('abc 1'), () => 1)).rejects.toMatchObject({ code: 'invalid-key' })
  })

  it.each<[KeyFormat, string[], string[], string]>([
    [
      'uuid',
      ['0190F3C2-7c1e-7abc-8def-0123456789ab', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
      ['8e03978e40d543e8bc936894a57f9324', '8e03978e-40d5-43e8-bc93-6894a57f9324-1', 'order-7'],
      'The key is not a UUID',
    ],
    [
      'ulid',
      ['01ARZ3NDEKTSV4RRFFQ69G5FAV', '01arz3ndektsv4rrffq69g5fav'],
      ['81ARZ3NDEKTSV4RRFFQ69G5FAV', '01ARZ3NDEKTSV4RRFFQ69G5FAU', '01ARZ3NDEKTSV4RRFFQ69G5FA'],
      'The key is not a ULID',
    ],
    [{ minLength: 16 }, ['0123456789abcdef'], ['2026-11-17'], 'at least 16 are accepted'],
    [
      { refuseEmails: true },
      ['a@b', 'npm@11.19.1', 'order@7', '@example.com'],
      ['someone@example.com', 'pay:someone+tag@mail.example.co.uk:7'],
      'looks like an e-mail address',
    ],
  ])('can be %j', async (keyFormat, taken, refused, text) => {
    const operation = guarded({ keyFormat })
    for (const key of taken) expect(await operation.run(runRequest(key), () => 1)).toBe(1)
    for (const key of refused) await expect(operation.run(runRequest(key), () => 1)).rejects.toThrow(text)
  })
})
