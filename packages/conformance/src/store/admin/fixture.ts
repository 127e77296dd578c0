/** What the cases about operators start from. */
import assert from 'node:assert/strict'
import type { ActRequest, ActResult, AdminRecords, OperatorAct, RowAct, RowVersion, Store } from 'latchkey'
import type { StoreHarness } from '../../store-harness.ts'
import { minuteMs, retentionMs } from '../fixture.ts'

export function adminIn({ name, admin }: Store): AdminRecords {
  assert.ok(admin, `${name} says that it has admin, and has none`)
  return admin
}

export async function openAdmin(harness: StoreHarness): Promise<{ store: Store; admin: AdminRecords }> {
  const store = await harness.open()
  return { store, admin: adminIn(store) }
}

let requests = 0

export function by(over: Partial<OperatorAct> = {}): OperatorAct {
  requests += 1
  return { by: 'ann', reason: 'the provider says so', source: 'cli', requestId: `request ${requests}`, ...over }
}

export const quarantineMs: number = 10 * minuteMs

export const neverHappened: Extract<RowAct, { kind: 'settle' }> = {
  kind: 'settle',
  verdict: { kind: 'never-happened' },
  retentionMs,
  quarantineMs,
}

export async function versionOf(admin: AdminRecords, id: string): Promise<RowVersion> {
  const notes = await admin.notes(id)
  assert.ok(notes, `expected notes of ${id}, found none`)
  return notes.version
}

/** With the version that the row has now. */
export async function actOn(
  admin: AdminRecords,
  id: string,
  act: RowAct,
  over: Partial<ActRequest> = {},
): Promise<ActResult> {
  return admin.act({ id, act, by: by(), expected: await versionOf(admin, id), ...over })
}

export async function acted(
  admin: AdminRecords,
  id: string,
  act: RowAct,
  over: Partial<ActRequest> = {},
): Promise<string> {
  const result = await actOn(admin, id, act, over)
  assert.ok(result.kind === 'acted', `expected the act to be done, got ${JSON.stringify(result)}`)
  return result.auditId
}
