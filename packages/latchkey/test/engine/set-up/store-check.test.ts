import { describe, expect, it } from 'vitest'
import { engine } from '../../../src/engine/internal.ts'
import { createLatchkey, type Latchkey } from '../../../src/engine/latchkey.ts'
import { singleTenant } from '../../../src/engine/request.ts'
import type { StoreCheck } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { fakeClock } from '../fake-clock.ts'
import { answered, executeRequest, operationName, runRequest, told } from '../fixture.ts'

const fit: StoreCheck = { kind: 'fit' }
const unfit: StoreCheck = { kind: 'rights', message: 'the role "app" may not update on keys: run grant update on keys' }

/** A store in memory whose check answers as the test says, and a clock that stands still until it is moved. */
function bench(first: () => Promise<StoreCheck>) {
  const clock = fakeClock()
  const reports: unknown[] = []
  let answer = first
  let checks = 0
  const store = {
    ...memoryStore(),
    check() {
      checks += 1
      return answer()
    },
  }
  const telemetry = {
    count() {},
    observe() {},
    report: (_: string, { error }: { error?: unknown }) => reports.push(error),
  }
  const latchkey: Latchkey<unknown, unknown> = createLatchkey({ store, scope: singleTenant, clock, telemetry })
  const operation = latchkey.guarded(operationName, { onFailure: 'hold', onStoreDown: 'run-unprotected' })
  return {
    clock,
    reports,
    latchkey,
    checks: () => checks,
    answers: (next: () => Promise<StoreCheck>) => void (answer = next),
    ask: async (key: string) => told(await operation[engine].execute(executeRequest(key), async () => answered(201))),
    run: (key: string) => operation.run(runRequest(key), () => 'ran'),
  }
}

describe('the check of the store', () => {
  it('begins with the construction, and is asked no more once the store was fit', async () => {
    const { ask, checks } = bench(async () => fit)
    expect(checks()).toBe(1)
    expect(await ask('a')).toBe('executed 201 yes')
    expect(await ask('b')).toBe('executed 201 yes')
    expect(checks()).toBe(1)
  })

  it('is awaited by the first request', async () => {
    let end = (_: StoreCheck): void => {}
    const { ask } = bench(() => new Promise(resolve => (end = resolve)))
    let isAnswered = false
    const asked = ask('a').finally(() => (isAnswered = true))
    await new Promise(setImmediate)
    expect(isAnswered).toBe(false)
    end(fit)
    expect(await asked).toBe('executed 201 yes')
  })

  it('refuses every request while the store is unfit, also where it might run unprotected, and says why once', async () => {
    const { ask, run, reports } = bench(async () => unfit)
    expect(await ask('a')).toBe('refused store-unavailable')
    expect(await ask('b')).toBe('refused store-unavailable')
    await expect(run('c')).rejects.toMatchObject({ code: 'store-rights', message: unfit.message })
    expect(reports).toMatchObject([{ code: 'store-rights', message: unfit.message }])
  })

  it('lets the first request look again: what was wrong at the construction may be cured since', async () => {
    const { ask, answers } = bench(async () => ({ kind: 'not-migrated', message: 'call migrate()' }))
    await new Promise(setImmediate)
    answers(async () => fit)
    expect(await ask('a')).toBe('executed 201 yes')
  })

  it('looks again once a second at most, and is cured without a restart', async () => {
    const { ask, answers, checks, clock } = bench(async () => unfit)
    for (const key of ['a', 'b', 'c']) expect(await ask(key)).toBe('refused store-unavailable')
    expect(checks()).toBe(2)
    answers(async () => fit)
    expect(await ask('d')).toBe('refused store-unavailable')
    clock.advance(1_000)
    expect(await ask('e')).toBe('executed 201 yes')
    expect(checks()).toBe(3)
  })

  it('is waited for two seconds, and then the request finds out by itself', async () => {
    const { ask, clock } = bench(() => new Promise(() => {}))
    const asked = ask('a')
    await new Promise(setImmediate)
    clock.advance(2_000)
    expect(await asked).toBe('executed 201 yes')
    // Nobody waits for a second one.
    expect(await ask('b')).toBe('executed 201 yes')
  })

  it('refuses nothing when the store does not answer it', async () => {
    const { ask, reports } = bench(() => Promise.reject(new Error('connection refused')))
    expect(await ask('a')).toBe('executed 201 yes')
    expect(reports).toEqual([])
  })

  it('holds up no shutdown', async () => {
    const { latchkey } = bench(() => new Promise(() => {}))
    expect(await latchkey.close()).toEqual({ drained: true, unstored: 0 })
  })
})
