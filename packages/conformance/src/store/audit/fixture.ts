/** A store that records lines, and what its trail says. */
import assert from 'node:assert/strict'
import type { AuditLine, AuditRecords, Store } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'

export interface Recorded {
  readonly harness: StoreHarness
  readonly records: AuditRecords<unknown>
  /** Records none. */
  readonly plain: Store
  /** Records a line with every end. */
  readonly store: Store
}

/** A case on a store that records, beside the same one that does not. */
export function recordedCase(
  { name, needs }: Pick<StoreCase, 'name' | 'needs'>,
  run: (recorded: Recorded) => Promise<void>,
): StoreCase {
  return {
    name,
    ...(needs && { needs }),
    async run(harness) {
      const plain = await harness.open()
      const { auditRecords: records } = plain
      assert.ok(records, `${plain.name} says that it has audit records, and has none`)
      await run({ harness: recordingHarness(harness), records, plain, store: records.recording() })
    },
  }
}

/** The same harness over the stores that record. */
export function recordingHarness<H extends StoreHarness>(harness: H): H {
  return {
    ...harness,
    async open() {
      const { auditRecords } = await harness.open()
      assert.ok(auditRecords, 'the store records no lines')
      return auditRecords.recording()
    },
  }
}

export async function linesOf(
  records: AuditRecords<unknown>,
  query: Omit<Parameters<AuditRecords<unknown>['page']>[0], 'limit'> = {},
): Promise<readonly AuditLine[]> {
  return (await records.page({ limit: 1_000, ...query })).lines
}

/** The lines of a row, in the order in which they were written, in short. */
export async function trailOf(records: AuditRecords<unknown>, id: string): Promise<readonly string[]> {
  return (await linesOf(records, { id })).map(
    ({ what, fence, status }) => `${what} ${fence}${status === undefined ? '' : ` ${status}`}`,
  )
}
