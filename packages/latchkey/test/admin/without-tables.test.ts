/** A store without operators' tables: its rows are shown all the same, and nobody acts. */
import { expect, it } from 'vitest'
import { createAdmin, type Actor, type Person } from '../../src/admin/index.ts'
import { createLatchkey, silentTelemetry } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { withoutFaculties } from '../memory/fixture.ts'

const ann: Person = { name: 'ann', role: 'operator' }
const vic: Person = { name: 'vic', role: 'viewer' }
const by = (who: Person): Actor => ({ who, source: 'cli' })
const reason = 'ticket 7'

it('shows operations without figures', async () => {
  const store = withoutFaculties(memoryStore())
  const latchkey = createLatchkey({ store, scope: () => 'acme', maintenance: false, telemetry: silentTelemetry })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  await pay.run({ scope: 'acme', key: 'k', input: 1 }, () => 1)
  await latchkey.close()
  expect(await createAdmin({ latchkey }).operations(by(vic))).toMatchObject({
    value: [{ name: 'pay', kind: 'guarded', leaseMs: 30_000, unknown: undefined, lastHour: undefined }],
  })
})

it('refuses acts on a store that cannot write them with their audit', async () => {
  const latchkey = createLatchkey({ store: withoutFaculties(memoryStore()), scope: () => 'acme', maintenance: false })
  const admin = createAdmin({ latchkey })
  const given = { id: '00000000-0000-4000-8000-000000000000', version: '1.1', reason }
  expect(await admin.take(by(ann), given)).toMatchObject({
    kind: 'not-supported',
    why: expect.stringContaining('traits.faculties'),
  })
  expect(admin.session(by(ann)).missing).toContain('admin')
})

it('finds, shows and lists rows of a store without operators’ tables, and says what it cannot', async () => {
  const latchkey = createLatchkey({ store: withoutFaculties(memoryStore()), scope: () => 'acme', maintenance: false })
  const admin = createAdmin({ latchkey })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  for (const scope of ['acme', 'globex'])
    await pay.run({ scope, key: 'k', input: 1 }, () => Promise.reject(new Error('read timeout'))).catch(() => {})
  const parts = { scope: 'acme', operation: 'pay', key: 'k' }
  const id = latchkey.identify(parts)
  const row = { id, state: 'unknown', waitsForMs: undefined, quarantineLeftMs: undefined }
  expect(await admin.find(by(ann), parts)).toMatchObject({ kind: 'found', value: [row] })
  expect(await admin.key(by(ann), id)).toMatchObject({ kind: 'found', value: { ...row, may: ['view'] } })
  expect(await admin.timeline(by(ann), id)).toMatchObject({
    kind: 'found',
    value: [{ kind: 'created' }, { kind: 'expires' }],
  })
  expect(await admin.work(by(ann), { kind: 'unknown', limit: 1 })).toMatchObject({
    value: { items: [{ state: 'unknown' }], next: expect.any(String) },
  })
  expect(await admin.work(by(ann), { kind: 'unknown', scope: 'acme' })).toMatchObject({ value: { items: [row] } })
  const limited = { ...by(ann), who: { ...ann, limitScopes: ['acme'] } }
  expect(await admin.work(limited, { kind: 'unknown' })).toMatchObject({ value: { items: [row] } })
  expect(await admin.work(by(ann), { kind: 'parked' })).toMatchObject({ value: { items: [] } })
  const nobody = { ...by(ann), who: { name: 'nobody', role: [] } }
  expect(await admin.work(nobody, { kind: 'unknown' })).toMatchObject({ kind: 'not-permitted' })
  expect(await admin.find(nobody, parts)).toMatchObject({ kind: 'not-permitted' })
  for (const refused of [
    await admin.overview(by(ann)),
    await admin.work(by(ann), { kind: 'overdue' }),
    await admin.work(by(ann), { kind: 'unknown', olderThanMs: 1 }),
  ])
    expect(refused).toMatchObject({ kind: 'not-supported', why: expect.stringContaining('no operators’ tables') })
})
