/** What the writes of a claim's owner share. Each compares fence AND claim id: a replaced owner matches no row. */
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { rowParts } from '../connection/layout.ts'
import { numberOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { RedisArgument, Reply } from '../../shared/redis/driver.ts'
import { evidenceLua } from '../lua/evidence.ts'
import { doubtLua, stepsLua } from '../lua/steps.ts'
import { transitionsLua } from '../lua/transitions.ts'
import { rowLua, uuidBytes } from './packed-row.ts'

export const ownerArgs: readonly string[] = ['id', 'ownFence', 'ownClaim']

export function ownerArguments({ id, fence, claimId }: Claim): RedisArgument[] {
  return [uuidBytes(id), String(fence), uuidBytes(claimId)]
}

/** A transition by an owner, or by a claim id alone. `isOwner` says whether the row is still under the claim. */
export function ownerScript(args: readonly string[], body: string): Script {
  return {
    // Work that is done must be recorded even where memory is short.
    flags: 'allow-oom',
    isReplicated: true,
    parts: rowParts,
    args: [...ownerArgs, ...args],
    body: `${rowLua}${transitionsLua}${stepsLua}${doubtLua}${evidenceLua}
local isOwner = fence == tonumber(ownFence) and claim == ownClaim
${body}`,
  }
}

/** 1: written, by this call or by the one whose reply was lost. */
export function ownerResult(reply: Reply): OwnerResult {
  return numberOf(reply) === 1 ? 'written' : 'claim-lost'
}
