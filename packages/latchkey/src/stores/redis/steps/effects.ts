/** Which effect has a downstream key: in the bucket of that key, where a provider's message finds it. */
import type { EffectRef, Subject } from '../../../ports/reconciliation.ts'
import type { Link } from '../connection/link.ts'
import { isNil, textOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import { stepsLua } from '../lua/steps.ts'

/** How long an effect is remembered after the expiry of its row: an unknown row outlives its expiry until it is settled. */
const afterExpiryMs = 30 * 24 * 3_600_000

const keepScript: Script = {
  flags: 'allow-oom',
  parts: ['effect'],
  args: ['subject', 'untilMs'],
  body: `return redis.call('SET', effect, subject, 'PXAT', untilMs)`,
}

const findScript: Script = {
  flags: 'no-writes',
  parts: ['effect'],
  args: [],
  body: `return redis.call('GET', effect)`,
}

export async function keepEffect(link: Link, key: string, subject: Subject, expiresAtMs: number): Promise<void> {
  await link.run(keepScript, key, [JSON.stringify(subject), String(expiresAtMs + afterExpiryMs)])
}

/** The row may be gone, or have begun another life: then this step is not in its journal, or has another key. */
const hasKeyScript: Script = {
  flags: 'no-writes',
  parts: ['journal'],
  args: ['position', 'key'],
  body: `${stepsLua}
local step = stepAt(position)
return step and step.y == key and 1 or 0`,
}

/** The newest: a key that is used again after its row expired is written again. */
export async function findEffect(link: Link, downstreamKey: string): Promise<Subject | undefined> {
  const reply = await link.run(findScript, downstreamKey)
  if (isNil(reply)) return undefined
  // Only `keepEffect` writes it.
  const subject = JSON.parse(textOf(reply)) as Subject & { readonly effect: EffectRef }
  const { id, effect } = subject
  const found = await link.run(hasKeyScript, id, [String(effect.position), downstreamKey])
  return found === 1 ? subject : undefined
}
