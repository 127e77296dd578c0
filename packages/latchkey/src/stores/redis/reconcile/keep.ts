/** Evidence and messages, written down before anything follows from them. */
import { systemClock } from '../../../ports/clock.ts'
import type { Finding, KeepResult, Subject } from '../../../ports/reconciliation.ts'
import { rowParts } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { listOf, textOf } from '../connection/reply.ts'
import { givenLua, type Script } from '../connection/script.ts'
import { evidenceLua } from '../lua/evidence.ts'
import { rowLua } from '../keys/packed-row.ts'
import { receive } from './messages.ts'
import { verdictArgs, verdictArguments } from './verdict.ts'

/** Its own id is random: no number of a deleted piece of evidence is ever given to another one. */
const keepScript: Script = {
  flags: 'allow-oom',
  parts: rowParts,
  args: ['evidenceId', 'source', 'ref', 'receivedAt', 'position', 'effectName', 'epoch', ...verdictArgs],
  body: `${givenLua}${rowLua}${evidenceLua}
local at = tonumber(receivedAt) or now
if not state or at < created then return { 'no-row' } end
for _, entry in ipairs(allEvidence()) do
  if entry.s == source and entry.r == ref then
    if entry.t >= created then return { 'duplicate', entry.i } end
    -- Evidence about an earlier generation of the row was about something else, whatever its name.
    entry.r = nil
    putEvidence(entry)
  end
end
putEvidence({
  s = source, r = ref, i = evidenceId, v = verdict, a = 0, t = at, q = time[1] * 1000000 + time[2],
  p = tonumber(position), n = position ~= '' and effectName or nil, e = tonumber(epoch),
  o = content == 'outcome' and answer or nil, x = given(value),
})
return { 'kept', evidenceId }`,
}

/**
 * A message is in the bucket of its name, and the row in another, so that no script sees both: the message comes first, and decides alone what is
 * news. A process that dies in between has kept no evidence, and has not answered the sender, whose next delivery is signed later.
 */
export async function keep(link: Link, { id, effect }: Subject, finding: Finding): Promise<KeepResult> {
  const { source, ref, verdict, delivery } = finding
  const receivedAtMs = delivery && (await receive(link, { source, ref, ...delivery }))
  if (delivery !== undefined && receivedAtMs === undefined) return { kind: 'replayed' }
  const reply = await link.run(keepScript, id, [
    systemClock.randomId(),
    source,
    ref,
    receivedAtMs === undefined ? '' : String(receivedAtMs),
    effect === undefined ? '' : String(effect.position),
    effect?.name ?? '',
    effect === undefined ? '' : String(effect.epoch),
    ...verdictArguments(verdict),
  ])
  const [kind, evidenceId] = listOf(reply)
  const word = textOf(kind)
  if (word !== 'kept' && word !== 'duplicate') return { kind: 'no-row' }
  return { kind: word, evidenceId: `${id} ${textOf(evidenceId)}` }
}
