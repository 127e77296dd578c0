/** Evidence and messages, written down before anything follows from them. */
import { systemClock } from '../../../ports/clock.ts'
import type { Finding, KeepResult, Subject } from '../../../ports/reconciliation.ts'
import { rowParts } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { listOf, numberOf, textOf } from '../connection/reply.ts'
import { givenLua, type Script } from '../connection/script.ts'
import { evidenceLua } from '../lua/evidence.ts'
import { rowLua } from '../lua/transitions.ts'
import { firstReceived, receive } from './messages.ts'
import { verdictArgs, verdictArguments } from './verdict.ts'

/** Its own id is random: no number of a deleted piece of evidence is ever given to another one. */
const keepScript: Script = {
  flags: 'allow-oom',
  parts: rowParts,
  args: ['evidenceId', 'source', 'ref', 'receivedAt', 'position', 'effectName', 'epoch', ...verdictArgs],
  body: `${givenLua}${rowLua}${evidenceLua}
local at = tonumber(receivedAt) or now
if not state or at < tonumber(created) then return { 'no-row', at } end
for _, entry in ipairs(allEvidence()) do
  if entry.s == source and entry.r == ref then
    if entry.t >= tonumber(created) then return { 'duplicate', at, entry.i } end
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
return { 'kept', at, evidenceId }`,
}

/**
 * A message is in the bucket of its name, and the row in another, so that no script sees both: the message is looked for first and written last. A
 * process that dies in between has kept the evidence, and the sender's next delivery finds it there.
 */
export async function keep(link: Link, { id, effect }: Subject, finding: Finding): Promise<KeepResult> {
  const { source, ref, verdict, delivery } = finding
  const received = delivery && (await firstReceived(link, { source, ref, ...delivery }))
  if (received === 'replayed') return { kind: 'replayed' }
  const reply = await link.run(keepScript, id, [
    systemClock.randomId(),
    source,
    ref,
    received === undefined ? '' : String(received),
    effect === undefined ? '' : String(effect.position),
    effect?.name ?? '',
    effect === undefined ? '' : String(effect.epoch),
    ...verdictArguments(verdict),
  ])
  const [kind, at, evidenceId] = listOf(reply)
  if (delivery !== undefined) await receive(link, { source, ref, ...delivery }, numberOf(at))
  const word = textOf(kind)
  if (word !== 'kept' && word !== 'duplicate') return { kind: 'no-row' }
  return { kind: word, evidenceId: `${id} ${textOf(evidenceId)}` }
}
