/** Acts of operators, with what they say of an outcome sealed. Names, reasons and notes of people stay readable, as in the audit. */
import type { AdminRecords, RowAct } from '../../ports/faculties/admin.ts'
import type { Keyring } from './keyring.ts'
import type { OpenRecord } from './record.ts'
import { sealVerdict } from './reconciliation.ts'
import { openText, type Place, sealText } from './seal.ts'

export function sealedAdmin(admin: AdminRecords, ring: Keyring, openRecord: OpenRecord): AdminRecords {
  return {
    ...admin,
    act: async request => admin.act({ ...request, act: await sealAct(ring, request.id, request.act) }),
    async work(listing) {
      const page = await admin.work(listing)
      const rows = page.rows.map(async row => ({ ...row, record: await openRecord(row.record) }))
      return { ...page, rows: await Promise.all(rows) }
    },
    async proposal(proposalId) {
      const found = await admin.proposal(proposalId)
      return found && { ...found, detail: await openDetail(ring, placeOf(found.id), found.detail) }
    },
    planBulk: async (plan, entry) => {
      const rows = plan.rows.map(async row => ({ ...row, detail: await sealDetail(ring, placeOf(row.id), row.detail) }))
      return admin.planBulk({ ...plan, rows: await Promise.all(rows) }, entry)
    },
    async bulkRows(bulkId, which) {
      const rows = await admin.bulkRows(bulkId, which)
      const opened = rows.map(async row => ({
        ...row,
        detail: row.detail === undefined ? undefined : await openDetail(ring, placeOf(row.id), row.detail),
      }))
      return Promise.all(opened)
    },
  }
}

async function sealAct(ring: Keyring, id: string, act: RowAct): Promise<RowAct> {
  if (act.kind === 'settle') {
    return { ...act, verdict: await sealVerdict(ring, { id, position: undefined }, act.verdict) }
  }
  return act.kind === 'propose' ? { ...act, detail: await sealText(ring, placeOf(id), act.detail) } : act
}

async function sealDetail(ring: Keyring, place: Place, detail: string | undefined): Promise<string | undefined> {
  return detail === undefined ? undefined : sealText(ring, place, detail)
}

/** Empty: it was decided, or cannot be opened. Nothing is done by it then. */
async function openDetail(ring: Keyring, place: Place, detail: string): Promise<string> {
  if (detail === '') return ''
  const opened = await openText(ring, place, detail)
  return opened.kind === 'opened' ? opened.text : ''
}

function placeOf(id: string): Place {
  return { identity: id, column: 'proposal' }
}
