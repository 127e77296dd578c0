/** An operator's verdict on an unknown row, with evidence and audit in the same script. */
import type { FoundVerdict } from '../../../ports/reconciliation.ts'
import type { Act, SettleResult } from '../../../ports/store.ts'
import { rowStateOf, stateCodes } from '../../shared/codes.ts'
import { rowParts } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { listOf, numberOf, textOf, textOrUndefined } from '../connection/reply.ts'
import { givenLua, type Script, wholeMs } from '../connection/script.ts'
import { rowLua, uuidBytes } from '../keys/packed-row.ts'
import { knownRecoveryLua } from '../keys/row.ts'
import { evidenceLua } from '../lua/evidence.ts'
import { settleLua } from '../lua/settle.ts'
import { doubtLua, stepsLua } from '../lua/steps.ts'
import { transitionsLua } from '../lua/transitions.ts'
import { verdictArgs, verdictArguments } from './verdict.ts'

const settleScript: Script = {
  flags: 'allow-oom',
  isReplicated: true,
  parts: rowParts,
  args: ['id', 'by', 'reason', 'retentionMs', ...verdictArgs],
  body: `${givenLua}${knownRecoveryLua}${rowLua}${transitionsLua}${stepsLua}${doubtLua}${evidenceLua}${settleLua}
if not state then return { 'not-found' } end
if state ~= ${stateCodes.unknown} then return { 'wrong-state', state } end
if not isKnown(recovery) then return { 'wrong-state', -1 } end
local effect = openEffect()
local needs = effect and 'value' or 'outcome'
if verdict ~= 'never-happened' and content ~= needs then
  return { 'wrong-verdict', needs, effect and effect.n or false }
end
settleUnknown(verdict, content == 'outcome' and answer or nil, given(value), effect and effect.position)
-- A person speaks about the whole row, whatever else of it is open.
if verdict == 'never-happened' then allowAgain(nil, 1) end
putEvidence({ s = 'operator', v = verdict, a = 1, t = now, n = effect and effect.n or nil })
addAudit('settle', by, reason, verdict)
return { 'settled' }`,
}

export interface Settlement {
  readonly verdict: FoundVerdict
  readonly act: Act
  readonly retentionMs: number
}

export async function settle(link: Link, id: string, { verdict, act, retentionMs }: Settlement): Promise<SettleResult> {
  const args = [uuidBytes(id), act.by, act.reason, wholeMs(retentionMs), ...verdictArguments(verdict)]
  const [kind, detail, effect] = listOf(await link.run(settleScript, id, args))
  switch (textOf(kind)) {
    case 'settled':
      return { kind: 'settled' }
    case 'wrong-state':
      return { kind: 'wrong-state', state: rowStateOf(numberOf(detail)) }
    case 'wrong-verdict':
      return {
        kind: 'wrong-verdict',
        needs: textOf(detail) === 'value' ? 'value' : 'outcome',
        effect: textOrUndefined(effect),
      }
    default:
      return { kind: 'not-found' }
  }
}
