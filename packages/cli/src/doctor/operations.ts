/** Rows that need the code of an operation which the application does not declare: after a rename, or too early after a clean-up. */
import type { Store } from 'latchkey'
import { createAdmin } from 'latchkey/admin'
import type { LoadedApplication } from '../desk/application.ts'
import { personHere } from '../desk/direct.ts'
import { type Check, ok, skip } from './finding.ts'

/** More operations than any application has. */
const rowsMax = 1_000

export function operationsCheck(store: () => Store, application: LoadedApplication | undefined): Check {
  return {
    name: 'operations',
    async look() {
      if (application === undefined) return skip('the configuration has no application to compare with')
      const declared = await declaredNames(application)
      const orphans = [...(await operationsWithWork(store()))].filter(([name]) => !declared.has(name))
      if (orphans.length === 0) return ok(`${declared.size} declared; everything that waits belongs to one of them`)
      return orphans.map(([name, rows]) => ({
        verdict: 'FAIL' as const,
        text: `${name} has ${rows} rows that wait, and no code`,
        cure: `declare ${name} again, as it was, until its rows have ended; then settle or resume what is left`,
      }))
    },
  }
}

async function declaredNames({ latchkey }: LoadedApplication): Promise<ReadonlySet<string>> {
  const read = await createAdmin({ latchkey }).operations({ who: personHere(), source: 'cli' })
  return new Set(read.kind === 'found' ? read.value.map(({ name }) => name) : [])
}

/** From the queues: what is to be resumed, and what is unknown or parked. */
async function operationsWithWork(store: Store): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  const add = (operation: string, rows: number) => void counts.set(operation, (counts.get(operation) ?? 0) + rows)
  for (const { identity } of await store.resumable({ limit: rowsMax })) add(identity.operation, 1)
  for (const kind of ['unknown', 'parked'] as const) {
    const { groups } = (await store.admin?.groups(kind)) ?? { groups: [] }
    for (const { operation, count } of groups) add(operation, count)
  }
  return counts
}
