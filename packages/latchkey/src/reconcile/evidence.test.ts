import { expect, it } from 'vitest'
import { fakeClock } from '../../test/engine/fake-clock.ts'
import { silentTelemetry } from '../ports/telemetry.ts'
import type { ApplyOptions, ApplyResult } from '../ports/reconciliation.ts'
import { present } from './evidence.ts'
import type { ReconcilerContext } from './host.ts'

it('lengthens the quarantine by the time that storing a negative took, because the store dates it when it is stored', async () => {
  const clock = fakeClock()
  const applied: ApplyOptions[] = []
  const reconciliation = {
    async keep() {
      clock.advance(3_000)
      return { kind: 'kept', evidenceId: '1' }
    },
    async apply(_: string, options: ApplyOptions): Promise<ApplyResult> {
      applied.push(options)
      return { kind: 'too-early', leftMs: 1 }
    },
  }
  const context = {
    store: { reconciliation },
    clock,
    telemetry: silentTelemetry,
    closing: new AbortController().signal,
    retentionOf: () => ({ retentionMs: 1, outcomeVersion: 0 }),
    quarantineMs: () => 10_000,
    call: (_: string, run: () => Promise<unknown>) => run(),
    settled() {},
    // Nothing else of the store is called here.
  } as unknown as ReconcilerContext
  const foundAtMs = clock.monotonicMs()
  await present(context, {
    operation: 'payments.create',
    subject: { id: 'a', effect: undefined },
    finding: { source: 'look-up', ref: '1:1', verdict: { kind: 'never-happened' } },
    ageMs: () => clock.monotonicMs() - foundAtMs,
  })
  expect(applied.map(({ quarantineMs }) => quarantineMs)).toEqual([13_000])
})
