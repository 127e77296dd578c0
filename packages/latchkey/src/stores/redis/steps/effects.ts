/** Which effect has a downstream key: in the bucket of that key, where a provider's message finds it. */
import type { Subject } from '../../../ports/reconciliation.ts'
import type { Link } from '../connection/link.ts'
import { isNil, textOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'

/** How long after the expiry of its row an effect is still found. What is said of it then is said of a row that is gone. */
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

/** The newest: a key that is used again after its row expired is written again. */
export async function findEffect(link: Link, downstreamKey: string): Promise<Subject | undefined> {
  const reply = await link.run(findScript, downstreamKey)
  // Only `keepEffect` writes it.
  return isNil(reply) ? undefined : (JSON.parse(textOf(reply)) as Subject)
}
