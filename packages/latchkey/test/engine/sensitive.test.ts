import { describe, expect, it } from 'vitest'
import { createLatchkey, json, type Store } from 'latchkey'
import { engine } from '../../src/engine/internal.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { act, answered, executeRequest, told } from './fixture.ts'

const secret = '4111-1111-1111-1111'
const request = { scope: 'acme', key: 'k', input: { amount: 1 } }

function open(store: Store = memoryStore()) {
  const latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false })
  return { store, latchkey }
}

describe('a sensitive operation', () => {
  it.each(['guarded', 'atomic'] as const)('gives its answer once and stores no byte of it: %s', async kind => {
    const { store, latchkey } = open()
    const operation =
      kind === 'guarded'
        ? latchkey.guarded('cards.issue', { onFailure: 'hold', sensitive: true })
        : latchkey.atomic('cards.issue', { sensitive: true })
    let runs = 0
    const issue = () => {
      runs += 1
      return { number: secret }
    }
    expect(await operation.runDetailed(request, issue)).toEqual({
      value: { number: secret },
      kept: 'sensitive',
      replayed: false,
    })
    await expect(operation.run(request, issue)).rejects.toMatchObject({ code: 'response-not-stored' })
    expect(runs).toBe(1)
    const { records } = await store.list({ limit: 10 })
    const record = await store.read(records[0]?.id ?? '')
    expect(record).toMatchObject({ state: 'completed', outcome: { status: 200, body: undefined, headers: [] } })
  })

  it('keeps what helps a client of a lost answer, and an answer without a body', async () => {
    const { latchkey } = open()
    const operation = latchkey.guarded('payments.create', { onFailure: 'hold', sensitive: true })
    const headers = [
      ['location', '/cards/7'],
      ['x-number', secret],
    ] as const
    const outcome = { status: 201, headers, body: Buffer.from(secret), version: 0 }
    await operation[engine].execute(executeRequest('a'), async () => ({ kind: 'answered', outcome }))
    const retry = await operation[engine].execute(executeRequest('a'), async () => answered(500))
    expect(retry).toMatchObject({
      refusal: { code: 'response-not-stored', outcome: { status: 201, headers: [['location', '/cards/7']] } },
    })
    await operation[engine].execute(executeRequest('b'), async () => answered(204, ''))
    expect(told(await operation[engine].execute(executeRequest('b'), async () => answered(500)))).toBe('replayed 204')
  })

  it('stores none from an operator either', async () => {
    const { store, latchkey } = open()
    const operation = latchkey.guarded('cards.issue', { onFailure: 'hold', sensitive: true })
    const lost = operation.run(request, () => {
      throw new Error('no answer')
    })
    await expect(lost).rejects.toThrow()
    const row = { scope: 'acme', operation: 'cards.issue', key: 'k' }
    const settled = await latchkey.settle(row, { kind: 'happened', status: 201, json: { number: secret } }, act)
    expect(settled).toEqual({ kind: 'settled' })
    expect(await store.read(latchkey.identify(row))).toMatchObject({ outcome: { status: 201, body: undefined } })
    await expect(operation.run(request, () => 'again')).rejects.toMatchObject({ code: 'response-not-stored' })
  })

  it('is phased too, and not deferred: nobody could fetch its answer', async () => {
    const { latchkey } = open()
    const issue = latchkey.phased('cards.issue', { version: 1, sensitive: true }, async () => json(201, { secret }))
    expect(await issue.run({ ...request, input: {} })).toMatchObject({ value: { secret } })
    await expect(issue.run({ ...request, input: {} })).rejects.toMatchObject({ code: 'response-not-stored' })
    const options = { deadlineMs: 1_000, sensitive: true } as { deadlineMs: number }
    expect(() => latchkey.deferred('cards.later', options, async () => json(201, {}))).toThrow(
      'unknown option sensitive',
    )
  })
})
