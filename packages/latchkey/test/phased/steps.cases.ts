/** What phased work does, whichever store keeps it. Run by a test file per store. */
import { expect, it } from 'vitest'
import { isLatchkeyError, json, notExecuted } from 'latchkey'
import { openerOn } from '../processes/migrated.ts'
import { ask, openStage, type Pay, rowOf, withDedup, withoutDedup } from './fixture.ts'

export function itRunsInPhases(placeName: () => string): void {
  const stageOf = openerOn(placeName, openStage)

  it('runs every step once, remembers it, and replays the outcome', async () => {
    const stage = await stageOf()
    const first = await ask(stage, 'plain')
    expect(first).toMatchObject({ status: 201, value: { label: 'plain' } })
    expect(await ask(stage, 'plain')).toEqual(first)
    expect(stage.phases).toEqual({ record: 1, receipt: 1 })
    expect(stage.provider.calls).toHaveLength(1)
    expect(await stage.place.businessRows('plain/record')).toBe(1)
    expect(await stage.place.businessRows('plain/receipt')).toBe(1)
  })

  it.each([403, 429])(
    'stores a %d that its definition returns: it is its outcome, and charged before',
    async status => {
      const stage = await stageOf()
      const charges: string[] = []
      const limited = stage.latchkey.phased<Pay>('payments.limited', { version: 1 }, async x => {
        await x.effect('charge', withDedup, async ({ key }) => void charges.push(key))
        return json(status, { limited: true })
      })
      const request = { scope: 'acme', key: `limited ${status}`, input: { label: 'limited' } }
      const first = await limited.run(request)
      expect(first).toMatchObject({ status, value: { limited: true } })
      const { record } = await stage.latchkey.inspect({ ...request, operation: 'payments.limited' })
      expect(record?.state).toBe('completed')
      expect(await limited.run(request)).toEqual(first)
      expect(charges).toHaveLength(1)
    },
  )

  it('rolls a phase that throws back, and a retry goes on after the last finished step', async () => {
    const stage = await stageOf()
    stage.breakPhase('receipt', new Error('out of paper'))
    await expect(ask(stage, 'thrown')).rejects.toThrow('out of paper')
    expect(await stage.place.businessRows('thrown/receipt')).toBe(0)
    expect(await stage.place.businessRows('thrown/record')).toBe(1)
    const again = await retry(() => ask(stage, 'thrown'))
    expect(again).toMatchObject({ status: 201 })
    expect(stage.phases).toEqual({ record: 1, receipt: 2 })
    expect(stage.provider.calls).toHaveLength(1)
  })

  it('lets a call that never left be tried again with the same downstream key', async () => {
    const stage = await stageOf()
    stage.provider.faults.push(() => Promise.reject(notExecuted(new Error('refused'))))
    await expect(ask(stage, 'refused')).rejects.toThrow('refused')
    expect((await stage.latchkey.inspect(rowOf('refused'))).record?.state).toBe('failed_retryable')
    await retry(() => ask(stage, 'refused'))
    const [first, second] = stage.provider.calls
    expect(second).toBe(first)
    expect(stage.phases).toEqual({ record: 1, receipt: 1 })
  })

  it('repeats a call without an answer with the same key where the provider recognises it', async () => {
    const stage = await stageOf()
    stage.provider.faults.push(() => Promise.reject(new Error('socket hang up')))
    expect(await ask(stage, 'repeated')).toMatchObject({ status: 201 })
    const [first, second] = stage.provider.calls
    expect(stage.provider.calls).toHaveLength(2)
    expect(second).toBe(first)
    expect(stage.phases).toEqual({ record: 1, receipt: 1 })
  })

  it('has committed the intent of a call before it makes it', async () => {
    const stage = await stageOf()
    const id = stage.latchkey.identify(rowOf('intent'))
    const seen: unknown[] = []
    stage.provider.faults.push(async () => seen.push((await stage.place.store.steps?.readJournal(id))?.steps?.at(-1)))
    await ask(stage, 'intent').catch(() => undefined)
    expect(seen).toMatchObject([{ position: 1, name: 'charge', kind: 'effect', state: 'open' }])
  })

  it('repeats no call past its window, also when a person lets the row go on', async () => {
    const stage = await stageOf({ effect: { timeoutMs: 1_000, dedup: { windowMs: 1 } } })
    stage.provider.faults.push(() => Promise.reject(new Error('socket hang up')))
    await expect(ask(stage, 'window')).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    const { store } = stage.place
    const record = await store.read(stage.latchkey.identify(rowOf('window')))
    expect(record).toMatchObject({ state: 'in_progress' })
    if (record !== undefined) expect(await store.park(record, 'poison')).toBe('written')
    const act = { by: 'a test', reason: 'to see whether it would call again' }
    expect(await stage.latchkey.unpark(rowOf('window'), act)).toEqual({ kind: 'unparked' })
    await expect(ask(stage, 'window')).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    expect(stage.provider.calls).toHaveLength(1)
  })

  it('takes no refusal for proof after a try without an answer', async () => {
    const stage = await stageOf()
    const refuse = () => Promise.reject(notExecuted(new Error('refused')))
    stage.provider.faults.push(() => Promise.reject(new Error('socket hang up')), refuse, refuse)
    await expect(ask(stage, 'refused-later')).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    expect((await stage.latchkey.inspect(rowOf('refused-later'))).record?.state).toBe('in_progress')
  })

  it('holds a call whose outcome is unknown, runs nothing after it, and never calls again', async () => {
    const stage = await stageOf({ effect: withoutDedup })
    stage.provider.faults.push(() => Promise.reject(new Error('socket hang up')))
    await expect(ask(stage, 'doubt')).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    await expect(ask(stage, 'doubt')).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    expect((await stage.latchkey.inspect(rowOf('doubt'))).record?.state).toBe('unknown')
    expect(stage.provider.calls).toHaveLength(1)
    expect(stage.phases).toEqual({ record: 1 })
  })

  it('raises the epoch of the downstream key only by the verdict that it never happened', async () => {
    const stage = await stageOf({ effect: withoutDedup })
    stage.provider.faults.push(() => Promise.reject(new Error('socket hang up')))
    await ask(stage, 'epoch').catch(() => undefined)
    const act = { by: 'a test', reason: 'the provider never saw it' }
    expect(await stage.latchkey.settle(rowOf('epoch'), { kind: 'never-happened' }, act)).toEqual({ kind: 'settled' })
    await retry(() => ask(stage, 'epoch'))
    const [first, second] = stage.provider.calls
    expect(stage.provider.calls).toHaveLength(2)
    expect(second).not.toBe(first)
  })

  it('ends a call that takes too long in unknown', async () => {
    const stage = await stageOf({ effect: { timeoutMs: 50 } })
    stage.provider.faults.push(() => new Promise(() => {}))
    await expect(ask(stage, 'slow')).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    expect((await stage.latchkey.inspect(rowOf('slow'))).record?.state).toBe('unknown')
  })

  it('stops a definition that swallows a doubt at its next step', async () => {
    const stage = await stageOf()
    const swallow = stage.latchkey.phased('payments.swallow', { version: 1 }, async x => {
      await x.effect('charge', withoutDedup, () => Promise.reject(new Error('lost'))).catch(() => undefined)
      await x.phase('after', tx => stage.place.insert(tx, 'swallowed'))
      throw new Error('unreachable')
    })
    await expect(swallow.run({ scope: 'acme', key: 'swallow', input: null })).rejects.toSatisfy(error =>
      isLatchkeyError(error, 'outcome-unknown'),
    )
    expect(await stage.place.businessRows('swallowed')).toBe(0)
  })

  it('parks a row whose steps no longer fit, and goes on once a person lets it', async () => {
    const stage = await stageOf()
    let [name, fails] = ['first', true]
    const renamed = stage.latchkey.phased('payments.renamed', { version: 1 }, async x => {
      await x.phase(name, tx => stage.place.insert(tx, 'renamed'))
      if (fails) throw new Error('half-way')
      return { status: 204, headers: [], body: new Uint8Array(), version: 0 }
    })
    const request = { scope: 'acme', key: 'renamed', input: null }
    await expect(renamed.run(request)).rejects.toThrow('half-way')
    name = 'second'
    await expect(retry(() => renamed.run(request))).rejects.toSatisfy(error => isLatchkeyError(error, 'parked'))
    const row = { scope: 'acme', operation: 'payments.renamed', key: 'renamed' }
    expect((await stage.latchkey.inspect(row)).record).toMatchObject({
      parked: true,
      lastErrorCode: 'definition-changed',
    })
    expect((await stage.latchkey.list({ parked: true })).records.map(({ operation }) => operation)).toContain(
      'payments.renamed',
    )
    ;[name, fails] = ['first', false]
    await expect(renamed.run(request)).rejects.toSatisfy(error => isLatchkeyError(error, 'parked'))
    const act = { by: 'a test', reason: 'the old name is back' }
    expect(await stage.latchkey.unpark(row, act)).toEqual({ kind: 'unparked' })
    expect(await retry(() => renamed.run(request))).toMatchObject({ status: 204 })
    expect(await stage.place.businessRows('renamed')).toBe(1)
    expect((await stage.latchkey.inspect(row)).audit).toMatchObject([{ act: 'unpark', by: 'a test' }])
  })

  it('drains rows of an older version with its own definition', async () => {
    const stage = await stageOf()
    const ran: number[] = []
    let fails = true
    const definition = (version: number) =>
      stage.latchkey.phased('payments.versions', { version }, async x => {
        await x.phase(`step of ${version}`, () => void ran.push(version))
        if (fails) throw new Error('half-way')
        return { status: 204, headers: [], body: new Uint8Array(), version: 0 }
      })
    const old = definition(1)
    await expect(old.run({ scope: 'acme', key: 'old', input: null })).rejects.toThrow('half-way')
    fails = false
    const current = definition(2)
    await retry(() => current.run({ scope: 'acme', key: 'old', input: null }))
    await current.run({ scope: 'acme', key: 'new', input: null })
    expect(ran).toEqual([1, 2])
  })

  it('keeps a doubt open when the definition fails before it comes back to it', async () => {
    const stage = await stageOf()
    let fails = false
    const calls: string[] = []
    const early = stage.latchkey.phased('payments.early', { version: 1, leaseMs: 1_000 }, async x => {
      if (fails) throw new Error('before the effect')
      await x.effect('charge', withDedup, async ({ key }) => {
        calls.push(key)
        throw new Error('socket hang up')
      })
      throw new Error('unreachable')
    })
    const request = { scope: 'acme', key: 'early', input: null }
    await expect(early.run(request)).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    fails = true
    await expect(retry(() => early.run(request))).rejects.toThrow('before the effect')
    const row = { scope: 'acme', operation: 'payments.early', key: 'early' }
    const journal = await stage.place.store.steps?.readJournal(stage.latchkey.identify(row))
    expect(journal?.steps).toMatchObject([{ name: 'charge', state: 'open', epoch: 0 }])
    expect(new Set(calls).size).toBe(1)
  })

  it('refuses steps that are begun side by side', async () => {
    const stage = await stageOf()
    const beside = stage.latchkey.phased('payments.beside', { version: 1 }, async x => {
      await Promise.all(['one', 'two'].map(name => x.phase(name, tx => stage.place.insert(tx, `beside/${name}`))))
      throw new Error('unreachable')
    })
    const request = { scope: 'acme', key: 'beside', input: null }
    await expect(beside.run(request)).rejects.toThrow('Steps run one after another')
  })

  it('gives fifty callers at once one run', async () => {
    const stage = await stageOf()
    const answers = await Promise.allSettled(Array.from({ length: 50 }, () => ask(stage, 'fifty')))
    expect(answers.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0)
    expect(stage.phases).toEqual({ record: 1, receipt: 1 })
    expect(stage.provider.calls).toHaveLength(1)
  })

  it('stores no credentials among the headers of its outcome', async () => {
    const stage = await stageOf()
    const secretive = stage.latchkey.phased('payments.secret', { version: 1 }, async () =>
      json(201, { paid: true }, [
        ['X-Auth-Token', 'secret'],
        ['Location', '/payments/1'],
      ]),
    )
    const request = { scope: 'acme', key: 'secret', input: null }
    await secretive.run(request)
    const record = await stage.place.store.read(
      stage.latchkey.identify({ scope: 'acme', operation: 'payments.secret', key: 'secret' }),
    )
    expect(record?.outcome?.headers.map(([name]) => name)).toEqual(['content-type', 'Location'])
    expect((await secretive.run(request)).headers.map(([name]) => name)).toEqual(['content-type', 'Location'])
  })

  it('refuses an input, a value or an outcome that is not JSON or too large, and says which', async () => {
    const stage = await stageOf()
    const big = 'x'.repeat(70_000)
    const tooLarge = (input: { label: string }) =>
      stage.pay.run({ scope: 'acme', key: 'big', input }).catch(error => error)
    expect(await tooLarge({ label: big })).toMatchObject({
      code: 'input-too-large',
      message: expect.stringMatching(/^payments\.create: the input has more than 65536 bytes/),
    })
    const nested: { label: string } = JSON.parse(`${'{"label":'.repeat(9_000)}"x"${'}'.repeat(9_000)}`)
    expect(await tooLarge(nested)).toMatchObject({
      code: 'input-too-large',
      message: expect.stringContaining('256 levels'),
    })
    const values = stage.latchkey.phased('payments.values', { version: 1 }, async x => {
      await x.phase('big', () => big)
      return { status: 204, headers: [], body: new Uint8Array(), version: 0 }
    })
    await expect(values.run({ scope: 'acme', key: 'v', input: null })).rejects.toThrow('the value of the phase big')
  })
}

/** A failed row is due again after a moment. */
async function retry<T>(run: () => Promise<T>): Promise<T> {
  const until = performance.now() + 20_000
  for (;;) {
    try {
      return await run()
    } catch (error) {
      if (!isLatchkeyError(error, 'in-progress') || performance.now() > until) throw error
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
}
