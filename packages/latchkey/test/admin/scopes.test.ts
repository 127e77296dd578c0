import { expect, it } from 'vitest'
import { type Actor, createAdmin, type Person } from '../../src/admin/index.ts'
import { createLatchkey, silentTelemetry } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'

const everything: Person = { name: 'bea', role: 'approver' }
const limited: Person = { ...everything, name: 'lim', limitScopes: ['acme'] }
const by = (who: Person): Actor => ({ who, source: 'cli' })

async function open(rows: readonly (readonly [operation: string, scope: string])[]) {
  const latchkey = createLatchkey({ store: memoryStore(), scope: () => 'none', telemetry: silentTelemetry })
  const declared = new Map(
    ['pay', 'refund'].map(name => [name, latchkey.guarded(name, { onFailure: 'hold' })] as const),
  )
  const failed = () => Promise.reject(new Error('read timeout'))
  for (const [at, [operation, scope]] of rows.entries())
    await declared
      .get(operation)
      ?.run({ scope, key: `k${at}`, input: at }, failed)
      .catch(() => {})
  await latchkey.close()
  const admin = createAdmin({ latchkey })
  return async (who: Person) => {
    const found = await admin.groups(by(who), 'unknown')
    if (found.kind !== 'found') throw new Error(found.kind)
    const counts = found.value.groups.map(({ operation, count }) => [operation, count])
    return { counts, partial: found.value.partial, groups: found.value.groups }
  }
}

it('shows a person with limitScopes the groups of their own rows, with no count and no operation of another tenant', async () => {
  const groupsOf = await open([
    ['pay', 'acme'],
    ['pay', 'other'],
    ['refund', 'other'],
  ])
  expect(await groupsOf(everything)).toMatchObject({
    counts: [
      ['pay', 2],
      ['refund', 1],
    ],
  })
  expect(await groupsOf(limited)).toMatchObject({ counts: [['pay', 1]], partial: false })
})

it('says of the groups of a person with limitScopes that there are more than the first hundred rows', async () => {
  const groupsOf = await open(Array.from({ length: 101 }, () => ['pay', 'acme'] as const))
  expect(await groupsOf(limited)).toMatchObject({ counts: [['pay', 100]], partial: true })
  expect((await groupsOf(limited)).groups[0]?.cause).toBe((await groupsOf(everything)).groups[0]?.cause)
})
