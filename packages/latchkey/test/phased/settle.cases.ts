/** How phased work in doubt is settled by those who take part in it: a late owner and a person. Run by a test file per store. */
import { expect, it } from 'vitest'
import { isLatchkeyError, json, type Store } from 'latchkey'
import { eventually } from '../engine/fixture.ts'
import { openerOn } from '../processes/migrated.ts'
import { ask, openStage, rowOf, type Stage, type StageOptions, withoutDedup } from './fixture.ts'

const act = { by: 'a test', reason: 'the provider was asked' } as const

/** As if the owner had been silent for its whole lease. */
async function giveUp(store: Store, id: string): Promise<void> {
  const claim = await store.read(id)
  if (claim === undefined) throw new Error('no row')
  await store.heartbeat(claim, 1)
  await eventually(async () => {
    await store.sweep({ limit: 1, id })
    return (await store.read(id))?.state === 'unknown'
  })
}

export function itSettlesDoubts(placeName: () => string): void {
  const stageOf = openerOn(placeName, (place, options: StageOptions = { effect: withoutDedup }) =>
    openStage(place, options),
  )

  /** A call that got no answer. */
  async function inDoubt(stage: Stage, label: string): Promise<void> {
    stage.provider.faults.push(() => Promise.reject(new Error('socket hang up')))
    await expect(ask(stage, label)).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
  }

  it('shows an operator the steps, the effect in doubt with the key that the provider got, and the cause', async () => {
    const stage = await stageOf()
    await inDoubt(stage, 'shown')
    const shown = await stage.latchkey.inspect(rowOf('shown'))
    expect(shown.steps).toMatchObject([
      { position: 0, name: 'record', kind: 'phase', state: 'done' },
      { position: 1, name: 'charge', kind: 'effect', state: 'open', epoch: 0 },
    ])
    const [key] = stage.provider.calls
    expect(shown.openEffect).toEqual({ name: 'charge', epoch: 0, downstreamKey: key, repeatable: false })
    expect([shown.record?.state, shown.cause]).toEqual(['unknown', shown.record?.lastErrorCode])
    expect(shown.cause).toEqual(expect.any(String))

    // Abandoned: the key of the next try is another one.
    await stage.latchkey.settle(rowOf('shown'), { kind: 'never-happened' }, act)
    await inDoubt(stage, 'shown')
    const again = await stage.latchkey.inspect(rowOf('shown'))
    expect(again.openEffect).toMatchObject({ epoch: 1, downstreamKey: stage.provider.calls[1] })
    expect(stage.provider.calls[1]).not.toBe(key)
  })

  it('takes the answer of an owner that was given up on as evidence, and never calls again', async () => {
    const stage = await stageOf()
    const { store } = stage.place
    const id = stage.latchkey.identify(rowOf('late'))
    const states: unknown[] = []
    stage.provider.faults.push(async () => {
      await giveUp(store, id)
      states.push((await store.read(id))?.state)
    })
    await expect(ask(stage, 'late')).rejects.toSatisfy(error => isLatchkeyError(error, 'in-progress'))
    states.push((await store.read(id))?.state)
    expect(states).toEqual(['unknown', 'pending'])
    const [key] = stage.provider.calls
    expect(await ask(stage, 'late')).toMatchObject({ status: 201, value: { charge: `ch-${key}` } })
    expect(stage.provider.calls).toHaveLength(1)
    expect(stage.phases).toEqual({ record: 1, receipt: 1 })
    const { evidence } = await stage.latchkey.inspect({ id })
    expect(evidence).toMatchObject([{ source: 'late-owner', verdict: 'happened', effect: 'charge', applied: true }])
  })

  it('lets a twin that waits go on where the owner was given up on', async () => {
    const stage = await stageOf()
    const { store } = stage.place
    const row = { scope: 'acme', operation: 'payments.wait', key: 'twin' }
    const calls: string[] = []
    let twin: Promise<unknown> = Promise.resolve()
    const options = { version: 1, onInProgress: 'wait', waitMs: 30_000 } as const
    const pay = stage.latchkey.phased('payments.wait', options, async x => {
      const charge = await x.effect('charge', withoutDedup, async ({ id, key }) => {
        calls.push(key)
        twin = run()
        await giveUp(store, id)
        return key
      })
      return json(201, { charge, attempt: x.attempt })
    })
    const run = () => pay.run({ scope: 'acme', key: 'twin', input: null }).catch((error: unknown) => error)
    const first = await run()
    const answer = { status: 201, value: { charge: calls[0], attempt: 2 } }
    // Whoever came second may have looked while nobody knew: that is told at once, and its retry is answered.
    const second = await twin
    expect(isLatchkeyError(second, 'outcome-unknown') ? await run() : second).toMatchObject(answer)
    expect(isLatchkeyError(first) ? answer : first).toMatchObject(answer)
    expect(calls).toHaveLength(1)
    expect((await stage.latchkey.inspect(row)).record).toMatchObject({ state: 'completed', attempts: 2 })
  })

  it.each(['happened', 'declined'] as const)('goes on with the result that a person says has %s', async kind => {
    const stage = await stageOf()
    await inDoubt(stage, kind)
    const settled = await stage.latchkey.settle(rowOf(kind), { kind, value: { charge: 'ch-found' } }, act)
    expect(settled).toEqual({ kind: 'settled' })
    expect((await stage.latchkey.inspect(rowOf(kind))).record?.state).toBe('pending')
    expect(await ask(stage, kind)).toMatchObject({ status: 201, value: { charge: 'ch-found' } })
    expect(stage.provider.calls).toHaveLength(1)
    expect(stage.phases).toEqual({ record: 1, receipt: 1 })
    expect((await stage.latchkey.inspect(rowOf(kind))).evidence).toMatchObject([{ source: 'operator', verdict: kind }])
  })

  it('takes no outcome for work with an effect open: its remaining steps would never run', async () => {
    const stage = await stageOf()
    await inDoubt(stage, 'whole')
    const wrong = { kind: 'wrong-verdict', needs: 'value', effect: 'charge' }
    const verdict = { kind: 'happened', status: 201, json: {} } as const
    expect(await stage.latchkey.settle(rowOf('whole'), verdict, act)).toEqual(wrong)
    const outcome = json(201, {})
    expect(await stage.latchkey.settle(rowOf('whole'), { kind: 'declined', outcome }, act)).toEqual(wrong)
    expect((await stage.latchkey.inspect(rowOf('whole'))).record?.state).toBe('unknown')
  })

  it('takes no result for work that has no effect open', async () => {
    const stage = await stageOf()
    const hold = stage.latchkey.guarded('payments.hold', { onFailure: 'hold' })
    const fail = () => Promise.reject(new Error('socket hang up'))
    const request = { scope: 'acme', key: 'guarded', input: null }
    await expect(hold.run(request, fail)).rejects.toThrow()
    const row = { scope: 'acme', operation: 'payments.hold', key: 'guarded' }
    expect(await stage.latchkey.settle(row, { kind: 'happened', value: 1 }, act)).toEqual({
      kind: 'wrong-verdict',
      needs: 'outcome',
      effect: undefined,
    })
    expect(await stage.latchkey.settle(row, { kind: 'declined', status: 402, json: { no: 1 } }, act)).toEqual({
      kind: 'settled',
    })
    expect((await stage.latchkey.inspect(row)).record).toMatchObject({ state: 'completed', outcome: { status: 402 } })
  })

  it('refuses a result that is too large or not JSON, and changes nothing', async () => {
    const stage = await stageOf()
    await inDoubt(stage, 'large')
    const settle = (result: unknown) => stage.latchkey.settle(rowOf('large'), { kind: 'happened', value: result }, act)
    await expect(settle('x'.repeat(70_000))).rejects.toThrow('settle: the value')
    await expect(settle(() => 1)).rejects.toThrow('which is not JSON')
    expect((await stage.latchkey.inspect(rowOf('large'))).record?.state).toBe('unknown')
  })

  it('refuses a second effect of the same name, which would have the downstream key of the first', async () => {
    const stage = await stageOf()
    const calls: string[] = []
    const both = stage.latchkey.phased('payments.both', { version: 1 }, async (x, input: { names: string[] }) => {
      for (const name of input.names) {
        await x.effect(name, withoutDedup, async ({ id, key }) => void calls.push(`${id === x.id}/${key}`))
      }
      return json(201, { id: x.id })
    })
    const run = (key: string, names: string[]) => both.run({ scope: 'acme', key, input: { names } })
    await expect(run('same', ['charge', 'charge'])).rejects.toThrow('the effect charge is called twice')
    expect(calls).toHaveLength(1)
    const id = stage.latchkey.identify({ scope: 'acme', operation: 'payments.both', key: 'other' })
    expect(await run('other', ['charge 1', 'charge 2'])).toMatchObject({ status: 201, value: { id } })
    expect(new Set(calls).size).toBe(3)
    expect(calls.every(call => call.startsWith('true/'))).toBe(true)
  })
}
