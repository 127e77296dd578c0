import type { Dialect } from '../../src/stores/postgres/sql/names.ts'
import { keyRules } from '../../src/stores/postgres/migrations/steps/0006-lean-tables.ts'

/** As constraints of the table, so that a statement that breaks one fails its test. */
export function addKeyRules({ keys }: Dialect): string {
  const rules = Object.entries(keyRules).map(([name, rule]) => `add constraint ${name} check (${rule})`)
  return `alter table ${keys} ${rules.join(', ')}`
}
