/** The journal of phased work with effects only. Every write checks the claim first, in its own script, and renews the lease with it. */
import type { Steps } from '../../../ports/steps.ts'
import { stateCodes, stepKindCodes, stepStateCodes } from '../../shared/codes.ts'
import type { Link } from '../connection/link.ts'
import { isNil, numberOf } from '../connection/reply.ts'
import { givenLua, optional, type Script, wholeMs } from '../connection/script.ts'
import { ownerArgs, ownerArguments, ownerResult } from '../keys/owner.ts'
import { renewLua, rowLua } from '../keys/packed-row.ts'
import { doubtLua, stepsLua } from '../lua/steps.ts'
import { keepEffect } from './effects.ts'
import { journalFrom } from './journal.ts'

const { open, done } = stepStateCodes
const { effect } = stepKindCodes

const readJournalScript: Script = {
  flags: 'no-writes',
  parts: ['journal'],
  args: [],
  body: `${stepsLua}
return readJournal()`,
}

/** A write of the owner, which renews its lease. */
function stepScript(args: readonly string[], body: string): Script {
  return {
    flags: 'allow-oom',
    isReplicated: true,
    parts: ['row', 'journal', 'leases'],
    args: [...ownerArgs, 'leaseMs', 'position', ...args],
    body: `${givenLua}${rowLua}${renewLua}${stepsLua}
if state ~= ${stateCodes.in_progress} or fence ~= tonumber(ownFence) or claim ~= ownClaim then return false end
${body}`,
  }
}

/**
 * An open intent may have reached the provider, so its window counts from its first try; one that is known not to have happened begins anew. Nothing is
 * written where the step there is another one, of another epoch, or done. Returns the expiry of the row.
 */
const openIntentScript: Script = stepScript(
  ['name', 'epoch', 'key', 'windowMs'],
  `
local before = stepAt(position)
if before and (before.k ~= ${effect} or before.n ~= name or before.e ~= tonumber(epoch) or before.s == ${done}) then return false end
local openedAt = before and before.s == ${open} and before.t or now
putStep(position, {
  n = name, k = ${effect}, s = ${open}, e = tonumber(epoch), t = openedAt,
  u = windowMs ~= '' and openedAt + windowMs or nil, y = key,
})
renew(leaseMs)
return expires`,
)

const recordResultScript: Script = stepScript(
  ['value'],
  `${doubtLua}
if not finishEffect(position, given(value)) then return 0 end
renew(leaseMs)
return 1`,
)

export function redisSteps(link: Link): Steps {
  return {
    readJournal: async id => journalFrom(await link.run(readJournalScript, id)),

    async openIntent(claim, { position, name, epoch, key, windowMs }, leaseMs) {
      // Rounded down: a window is never taken for longer than it is.
      const window = windowMs === undefined ? '' : String(Math.floor(windowMs))
      const args = [...ownerArguments(claim), wholeMs(leaseMs), String(position), name, String(epoch), key, window]
      const expiresAtMs = await link.run(openIntentScript, claim.id, args)
      if (isNil(expiresAtMs)) return 'claim-lost'
      // Before the call that the intent is for: a provider's message cannot come sooner.
      await keepEffect(link, key, { id: claim.id, effect: { position, name, epoch } }, numberOf(expiresAtMs))
      return 'written'
    },
    async recordResult(claim, { position, value }, leaseMs) {
      const args = [...ownerArguments(claim), wholeMs(leaseMs), String(position), optional(value)]
      const reply = await link.run(recordResultScript, claim.id, args)
      return isNil(reply) ? 'claim-lost' : ownerResult(reply)
    },
  }
}
