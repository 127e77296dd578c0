/** Evidence that is kept, applied: one script, with the evidence marked in it. */
import type { ApplyOptions, ApplyResult } from '../../../ports/reconciliation.ts'
import { rowStateOf, stateCodes, stateOf } from '../../shared/codes.ts'
import { rowParts } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { isNil, listOf, numberOf, textOf } from '../connection/reply.ts'
import { type Script, wholeMs } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { dueRows } from '../keys/due.ts'
import { rowLua, uuidBytes } from '../keys/packed-row.ts'
import { knownRecoveryLua } from '../keys/row.ts'
import { evidenceLua } from '../lua/evidence.ts'
import { settleLua } from '../lua/settle.ts'
import { doubtLua, stepsLua } from '../lua/steps.ts'
import { transitionsLua } from '../lua/transitions.ts'

/**
 * The evidence is of this generation of the row, about what is in doubt there, and of the kind that it needs: the value of the open effect, or an
 * outcome where none is open.
 */
const fitsLua = `
local function fits(entry)
  if state ~= ${stateCodes.unknown} or not isKnown(recovery) or entry.t < created then return false end
  local never, open = entry.v == 'never-happened', openEffect()
  if open then return (never or not entry.o) and entry.p == open.position and entry.e == open.e end
  return (never or entry.o ~= nil) and entry.p == nil
end`

const applyScript: Script = {
  flags: 'allow-oom',
  isReplicated: true,
  parts: rowParts,
  args: ['id', 'evidenceId', 'quarantineMs', 'retentionMs', 'lookFence', 'look'],
  body: `${knownRecoveryLua}${rowLua}${transitionsLua}${stepsLua}${doubtLua}${evidenceLua}${settleLua}${fitsLua}
local entry
for _, each in ipairs(allEvidence()) do
  if each.r and each.i == evidenceId then entry = each end
end
if not entry then return { 'not-applicable', false } end
if entry.a == 1 then return { 'applied-before' } end
if look ~= '' and (state ~= ${stateCodes.unknown} or fence ~= tonumber(lookFence) or more.lo ~= tonumber(look)) then return { 'claim-lost' } end
if not fits(entry) then return { 'not-applicable', state } end
-- By when it was found: what was not there within the quarantine may have come since.
local quarantineEnd = at + quarantineMs
if entry.v == 'never-happened' and entry.t < quarantineEnd then
  return { 'too-early', math.max(0, quarantineEnd - now) }
end
local to = settleUnknown(entry.v, entry.o, entry.x, entry.p)
entry.a = 1
putEvidence(entry)
return { 'settled', to }`,
}

export async function apply(link: Link, evidenceId: string, options: ApplyOptions): Promise<ApplyResult> {
  const { quarantineMs, retentionMs, lookup } = options
  const [id = '', name = ''] = evidenceId.split(' ')
  // A look-up of another row is not the one that this evidence came by.
  const look = lookup?.id === id ? String(lookup.look) : '-'
  const reply = await link.run(applyScript, id, [
    uuidBytes(id),
    name,
    wholeMs(quarantineMs),
    wholeMs(retentionMs),
    String(lookup?.fence ?? ''),
    lookup === undefined ? '' : look,
  ])
  return resultOf(listOf(reply))
}

type SettledTo = Extract<ApplyResult, { kind: 'settled' }>['to']

function resultOf([kind, detail]: readonly Reply[]): ApplyResult {
  const word = textOf(kind)
  switch (word) {
    case 'settled':
      // The script settles to no other state.
      return { kind: 'settled', to: stateOf(numberOf(detail)) as SettledTo }
    case 'too-early':
      return { kind: 'too-early', leftMs: numberOf(detail) }
    case 'applied-before':
    case 'claim-lost':
      return { kind: word }
    default:
      return { kind: 'not-applicable', state: isNil(detail) ? undefined : rowStateOf(numberOf(detail)) }
  }
}

const waitingScript: Script = {
  flags: 'no-writes',
  parts: ['row', 'journal', 'evidence'],
  args: [],
  body: `${knownRecoveryLua}${rowLua}${stepsLua}${doubtLua}${evidenceLua}${fitsLua}
local waiting = {}
for _, entry in ipairs(allEvidence()) do
  if entry.r and entry.a == 0 and entry.v ~= 'never-happened' and fits(entry) then
    waiting[#waiting + 1] = { entry.i, string.format('%.0f', entry.q) }
  end
end
return waiting`,
}

interface Waiting {
  readonly evidenceId: string
  readonly operation: string
}

export async function waiting(link: Link, { limit }: { limit: number }): Promise<readonly Waiting[]> {
  const rows = await dueRows(link, 'unknowns')
  const replies = await Promise.all(rows.map(({ id }) => link.run(waitingScript, id)))
  const found = rows.flatMap(({ id, operation }, at) =>
    listOf(replies[at]).map(entry => {
      const [name, keptAt] = listOf(entry)
      return { evidenceId: `${id} ${textOf(name)}`, operation, keptAt: numberOf(keptAt) }
    }),
  )
  return found
    .toSorted((one, other) => one.keptAt - other.keptAt)
    .slice(0, limit)
    .map(({ evidenceId, operation }) => ({ evidenceId, operation }))
}
