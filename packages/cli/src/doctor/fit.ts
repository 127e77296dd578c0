/** Whether the store can be used as it is: the check that every process makes when it starts. */
import type { Store } from 'latchkey'
import { type Check, type Finding, ok } from './finding.ts'

export function fitCheck(store: () => Store): Check {
  return { name: 'store', look: async () => [await fitFinding(store())] }
}

async function fitFinding(store: Store): Promise<Finding> {
  const checked = (await store.check?.()) ?? { kind: 'fit' as const }
  if (checked.kind === 'fit') {
    const { warning } = checked
    return warning === undefined ? (ok('fit for use')[0] as Finding) : { verdict: 'warn', text: warning }
  }
  const cure = checked.kind === 'not-migrated' ? 'run latchkey migrate as the role that owns the tables' : undefined
  return { verdict: 'FAIL', text: checked.message, ...(cure === undefined ? {} : { cure }) }
}
