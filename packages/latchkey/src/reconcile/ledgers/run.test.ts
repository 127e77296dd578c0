import { expect, it } from 'vitest'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { eventually, recordingTelemetry } from '../../../test/engine/fixture.ts'
import type { OwnerResult } from '../../ports/store.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import type { NamedLedger } from './compare.ts'
import { beginComparison } from './run.ts'
import type { ReconcilerContext } from '../host.ts'

function newScene() {
  const clock = fakeClock()
  const telemetry = recordingTelemetry()
  const { ledgers, ...inner } = memoryStore({ clock })
  const faults: { renew: (() => Promise<OwnerResult>) | undefined } = { renew: undefined }
  const renew: typeof ledgers.renew = (run, leaseMs) => faults.renew?.() ?? ledgers.renew(run, leaseMs)
  const context: ReconcilerContext = {
    store: inner,
    ledgers: () => ({ ...ledgers, renew }),
    clock,
    telemetry,
    closing: new AbortController().signal,
    retentionOf: () => ({ retentionMs: 1_000, outcomeVersion: 1, sensitive: false }),
    quarantineMs: () => 1_000,
    call: (_, run) => run(),
    settled: () => undefined,
  }
  const { page, ledger } = slowLedger()
  const beginWith = (compared: NamedLedger) =>
    beginComparison(context, { ledger: compared, everyMs: 1, ending: new AbortController().signal })
  const begin = () => beginWith(ledger)
  /** Twenty seconds, and what they set going. */
  const wait = async () => {
    clock.advance(20_000)
    await new Promise(resolve => setImmediate(resolve))
  }
  return { clock, telemetry, ledgers, faults, page, begin, beginWith, wait }
}

/** Ours waits for somebody to turn the page. */
function slowLedger(): { page: () => void; ledger: NamedLedger } {
  let turn = (): void => {}
  const turned = new Promise<void>(resolve => (turn = resolve))
  const ledger: NamedLedger = {
    name: 'books',
    everyMs: 3_600_000,
    async *ours() {
      await turned
      yield { key: 'a', value: 'a' as never }
    },
    async *theirs() {},
    same: () => true,
  }
  return { page: () => turn(), ledger }
}

it('keeps a slow comparison its own for as long as it takes', async () => {
  const { page, begin, wait, ledgers } = newScene()
  const begun = await begin()
  if (begun.kind !== 'begun') throw new Error('not begun')
  for (let waits = 0; waits < 15; waits += 1) await wait()
  expect(await begin()).toMatchObject({ kind: 'not-due' })
  page()
  expect(await begun.report).toMatchObject({ compared: 1, missing: 1, tookMs: 300_000 })
  expect(await ledgers.last('books')).toMatchObject({ compared: 1, missing: 1, finishedAgoMs: 0 })
})

it.each([
  ['another process has taken it over', async () => 'claim-lost' as const],
  ['it cannot be renewed while its lease lasts', () => Promise.reject(new Error('connection terminated'))],
])('ends when %s, and leaves the next one alone', async (_, renew) => {
  const { clock, telemetry, ledgers, faults, begin, wait } = newScene()
  const begun = await begin()
  if (begun.kind !== 'begun') throw new Error('not begun')
  const ended = begun.report.catch((error: unknown) => error)
  faults.renew = renew
  for (let waits = 0; waits < 3; waits += 1) await wait()
  const next = await ledgers.begin('books', { everyMs: 1, leaseMs: 3_600_000 })
  if (next.kind !== 'begun') throw new Error('not free')
  await eventually(() => {
    // A side that hangs is not waited for.
    clock.advance(1_000)
    return telemetry.counted('reconcile.failed') === 1
  })
  expect(await ended).toMatchObject({ code: 'claim-lost' })
  expect(await ledgers.renew(next.run, 3_600_000)).toBe('written')
})

it('observes what is missing, extra and different, each by the name of the ledger, and that it has just ended', async () => {
  const { telemetry, beginWith } = newScene()
  const entries = async function* (...keys: string[]) {
    for (const key of keys) yield { key: key.slice(0, 1), value: key as never }
  }
  const begun = await beginWith({
    name: 'books',
    everyMs: 3_600_000,
    // Only ours: a, b, c. Only theirs: e, f. Different: d.
    ours: () => entries('a', 'b', 'c', 'd1', 'g'),
    theirs: () => entries('d2', 'e', 'f', 'g'),
    same: (ours, theirs) => ours === theirs,
  })
  if (begun.kind !== 'begun') throw new Error('not begun')
  await begun.report
  const attributes = { detail: 'books' }
  for (const [metric, value] of [
    ['ledger.missing', 3],
    ['ledger.extra', 2],
    ['ledger.different', 1],
    ['ledger.last_run_age', 0],
  ] as const) {
    expect(telemetry.told.filter(one => Array.isArray(one) && one[0] === metric)).toEqual([[metric, value, attributes]])
  }
})

it('names the side that gives nothing any more', async () => {
  const { begin, wait } = newScene()
  const begun = await begin()
  if (begun.kind !== 'begun') throw new Error('not begun')
  const ended = begun.report.catch((error: unknown) => error)
  let over = false
  void ended.then(() => (over = true))
  await eventually(async () => {
    await wait()
    return over
  })
  expect(String(await ended)).toContain('ours gave nothing for 600000 ms')
})
