import assert from 'node:assert/strict'
import type { Quotas, Store } from 'latchkey'

export function quotasIn({ name, quotas }: Store): Quotas {
  assert.ok(quotas, `${name} says that it has quotas, and has none`)
  return quotas
}
