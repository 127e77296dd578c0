/** A request that the application refused before its handler: answered from its row, and nothing is claimed for it. */
import { describe, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import { fingerprintInput } from '../../src/engine/fingerprint/fingerprint.ts'
import { json } from '../../src/engine/steps/json.ts'
import { notExecuted } from '../../src/ports/errors.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import {
  answered,
  brief,
  eventually,
  executeRequest,
  faultyStore,
  gate,
  idOf,
  latchkeyOn,
  operationName,
  rejects,
  told,
} from './fixture.ts'

const refusal = new Error('the name is taken')
const hold = { onFailure: 'hold' } as const

describe('a look at the row', () => {
  it('claims nothing: without a row, the refusal stands', async () => {
    const { store, calls, inner } = faultyStore()
    const { look } = latchkeyOn(store).guarded(operationName, hold)[engine]
    const answer = await look(executeRequest('k'), refusal)
    expect([told(answer), calls.claim, await inner.read(idOf('k'))]).toEqual(['threw not-stored', 0, undefined])
    expect(answer).toMatchObject({ attempt: { error: refusal } })
  })

  it('replays a finished request to its retry, and refuses another one under its key', async () => {
    const { look, execute } = latchkeyOn(memoryStore()).guarded(operationName, hold)[engine]
    await execute(executeRequest('k'), async () => answered(201))
    expect(told(await look(executeRequest('k'), refusal))).toBe('replayed 201')
    const other = executeRequest('k', { fingerprint: fingerprintInput({ amount: 2 }) })
    expect(told(await look(other, refusal))).toBe('refused key-reused')
    const stranger = executeRequest('k', { authorizeReplay: async () => false })
    expect(told(await look(stranger, refusal))).toBe('refused replay-not-authorized')
  })

  it('lets the refusal stand where an earlier attempt is known to have done nothing', async () => {
    const { look, execute } = latchkeyOn(memoryStore()).guarded(operationName, hold)[engine]
    await execute(executeRequest('k'), async () => ({ kind: 'threw', error: notExecuted() }))
    expect(told(await look(executeRequest('k'), refusal))).toBe('threw not-stored')
  })

  it('finds a dead owner, and tells that its outcome is unknown', async () => {
    const { store, break: fail, inner } = faultyStore()
    const settings = { ...brief, ...hold }
    fail('heartbeat', rejects)
    const dead = latchkeyOn(store).guarded(operationName, settings)[engine]
    void dead.execute(executeRequest('k'), () => new Promise(() => {}))
    await eventually(async () => ((await inner.read(idOf('k')))?.leaseLeftMs ?? 1) <= 0)
    const { look } = latchkeyOn(inner).guarded(operationName, settings)[engine]
    expect(told(await look(executeRequest('k'), refusal))).toBe('refused outcome-unknown')
  })

  it('waits for a duplicate where the operation waits', async () => {
    const waiting = { ...hold, onInProgress: 'wait' } as const
    const { look, execute } = latchkeyOn(memoryStore()).guarded(operationName, waiting)[engine]
    const finish = gate()
    const first = execute(executeRequest('k'), async () => {
      await finish.opened
      return answered(201)
    })
    const looking = look(executeRequest('k'), refusal)
    finish.open()
    expect([told(await first), told(await looking)]).toEqual(['executed 201 yes', 'replayed 201'])
  })

  it('sees an atomic handler of this process before its commit', async () => {
    const { look, execute } = latchkeyOn(memoryStore()).atomic(operationName)[engine]
    const finish = gate()
    const first = execute(executeRequest('k'), async () => {
      await finish.opened
      return answered(201)
    })
    expect(told(await look(executeRequest('k'), refusal))).toBe('refused in-progress')
    finish.open()
    expect([told(await first), told(await look(executeRequest('k'), refusal))]).toEqual([
      'executed 201 yes',
      'replayed 201',
    ])
  })

  it('does not call work refused that a worker is going to run', async () => {
    const latchkey = latchkeyOn(memoryStore())
    const definition = async () => json(201, {})
    const { look, execute } = latchkey.deferred(operationName, { deadlineMs: 60_000 }, definition)[engine]
    expect(told(await execute(executeRequest('k'), { input: () => ({}) }))).toBe('accepted')
    expect(told(await look(executeRequest('k'), refusal))).toBe('refused in-progress')
  })

  it('answers 503 while the store is away, unless the operation runs without it', async () => {
    const { store, break: fail } = faultyStore()
    const latchkey = latchkeyOn(store)
    const { look } = latchkey.guarded(operationName, hold)[engine]
    const unprotected = latchkey.guarded('other', { ...hold, onStoreDown: 'run-unprotected' })[engine]
    fail('read', rejects)
    expect(told(await look(executeRequest('k'), refusal))).toBe('refused store-unavailable')
    expect(told(await unprotected.look(executeRequest('k'), refusal))).toBe('threw not-stored')
  })
})
