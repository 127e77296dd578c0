/** An erased tenant leaves lines that say what happened, and not whose it was. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { latchkeyOn } from '../engine/fixture.ts'
import type { RawDatabase } from '../sealed/databases.ts'

const scope = 'Mk9-tenant-of-the-trail'

export function erasedTrailCases(openDatabase: () => Promise<RawDatabase>): void {
  let raw: RawDatabase
  beforeEach(async () => {
    raw = await openDatabase()
  })
  afterEach(() => raw.close())

  it('blanks the scope in every line, so that a dump holds it nowhere', async () => {
    const latchkey = latchkeyOn(raw.store, { audit: { records: 'all' } })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    for (const key of ['a', 'b', 'c']) await pay.run({ scope, key, input: 1 }, async () => key)
    await expect(pay.run({ scope, key: 'a', input: 2 }, async () => 2)).rejects.toMatchObject({ code: 'key-reused' })
    await pay.run({ scope: 'other', key: 'a', input: 1 }, async () => 1)
    expect(await raw.dump()).toContain(scope)
    const erased = await latchkey.erase({ scope, batch: 2 })
    expect(erased).toMatchObject({ rows: 3, auditLines: 4, openRows: 0 })
    const dump = await raw.dump()
    expect(dump).not.toContain(scope)
    const { lines } = await latchkey.auditRecords()
    expect(lines.map(({ what }) => what)).toEqual(['completed', 'completed', 'completed', 'misuse', 'completed'])
    expect(lines.map(line => line.scope)).toEqual([undefined, undefined, undefined, undefined, 'other'])
    expect(lines.filter(({ fingerprint }) => fingerprint !== undefined)).toHaveLength(1)
    await latchkey.close()
  })
}
