/** The owner's answer: in time, late, or repeated. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { packOutcome } from '../../shared/packed-outcome.ts'
import { hexOf } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { type Script, type ScriptForMany, wholeMs } from '../connection/script.ts'
import { ownerArguments, ownerResult, ownerScript } from './owner.ts'
import { graceMs, quickLua } from './packed-row.ts'

const { in_progress: inProgress, completed, unknown } = stateCodes

/** The usual case, which leaves no doubt about what the row was before. 0: the other script finds out, and knows what to do with a journal. */
const completeInTimeScript: ScriptForMany = {
  flags: 'allow-oom',
  isReplicated: true,
  parts: ['row', 'leases', 'expiries'],
  each: { format: '<c16c16ddI4c0', args: ['id', 'ownClaim', 'ownFence', 'retentionMs', 'answer'] },
  shared: quickLua,
  body: `
local packed = redis.call('GET', row)
if not packed then return 0 end
local isKnown, state, recovery, attempts, crashes, fence, created, expires, _, tombstone, claim = headOf(packed)
if not isKnown or state ~= ${inProgress} or fence ~= ownFence or claim ~= ownClaim then return 0 end
if recovery == ${recoveryCodes.resume} then return 0 end
if expires < now + retentionMs then
  expires = now + retentionMs
  redis.call('ZADD', expiries, whole(expires), id)
end
local head = packHead(${completed}, recovery, attempts, crashes, fence, created, expires, now, tombstone, claim)
redis.call('SET', row, head .. '\\0' .. factsOf(packed) .. answer, 'PXAT', whole(expires + tombstone + ${graceMs}))
redis.call('ZREM', leases, id)
return 1`,
}

/** An answer for the whole says nothing about an effect that is in doubt: phased work needs that one settled first. */
const completeLateScript: Script = ownerScript(
  ['retentionMs', 'answer'],
  `
local settles = state == ${unknown} and not (recovery == ${recoveryCodes.resume} and openEffect())
if isOwner and (state == ${inProgress} or settles) then
  if settles then noteLateOwner(ownClaim, 'happened', 1) end
  toCompleted(answer, retentionMs)
  return 1
end
-- Its own answer is there already: the reply to the first write was lost. An answer by evidence is not its own.
if isOwner and state == ${completed} and not more.by then return 1 end
noteLateOwner(ownClaim, 'happened', 0)
return 0`,
)

export interface Completion {
  readonly claim: Claim
  readonly retentionMs: number
  readonly answer: Buffer
}

/** A larger answer would keep the others of its script waiting: it is sent alone. */
const sharedBytesMax = 65_536

export function completer(link: Link): (claim: Claim, outcome: Outcome, retentionMs: number) => Promise<OwnerResult> {
  const alone = async ({ claim, retentionMs, answer }: Completion) => {
    const args = [...ownerArguments(claim), wholeMs(retentionMs), answer]
    return ownerResult(await link.run(completeLateScript, claim.id, args))
  }
  const together = link.together<Completion, OwnerResult>({
    script: completeInTimeScript,
    pack: packedCompletion,
    resultOf(completion, reply, lack) {
      if (reply !== 1) return alone(completion)
      if (lack !== undefined) throw lack
      return 'written'
    },
  })
  return (claim, outcome, retentionMs) => {
    const completion = { claim, retentionMs, answer: packOutcome(outcome, claim.fence) }
    return completion.answer.length > sharedBytesMax ? alone(completion) : together(completion)
  }
}

/** In the order of the script. */
function packedCompletion({ claim, retentionMs, answer }: Completion): Buffer {
  const head = Buffer.allocUnsafe(52)
  head.write(hexOf(claim.id), 0, 'hex')
  head.write(hexOf(claim.claimId), 16, 'hex')
  head.writeDoubleLE(claim.fence, 32)
  head.writeDoubleLE(Math.ceil(retentionMs), 40)
  head.writeUInt32LE(answer.length, 48)
  return Buffer.concat([head, answer])
}
