/** How a relay works, with the defaults. */
import { type Check, checkOptions, type ChecksOf, shown } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import { anything, count, having, oneOf, recordOf, storedMs, waitedMs, wholeUpTo } from '../ports/option-kinds.ts'
import type { RelayOptions } from './relay.ts'

export interface RelayPolicy {
  /**
   * How many messages are read at once. Default 200: one commit covers two hundred deliveries, and a crash repeats at most as many. Lower it
   * for large payloads.
   */
  readonly batch: number
  /** How many deliveries of a batch run at once, each for another aggregate. Default 8. Brokers have a `concurrency` of their own. */
  readonly concurrency: number
  /**
   * How long a silent relay holds its lane. Default 30,000; renewed while it works. Lower: the messages of a dead relay are delivered
   * sooner. Higher: fewer deliveries are repeated when the database or the process stalls.
   */
  readonly leaseMs: number
  /** How long one delivery may take. Default 15,000. */
  readonly timeoutMs: number
  /** How often a message is tried before it is parked. Default 10: about ten minutes with the default backoff. */
  readonly attemptsMax: number
  /** How many relays may crash on one message before it is parked. Default 3, after two crashes on the batch that contained it. */
  readonly crashesMax: number
  /** The wait after the first failure; it doubles with every further one. Default 1,000. */
  readonly backoffMs: number
  /** The longest wait. Default 300,000. */
  readonly backoffMsMax: number
  /**
   * What happens to an aggregate when one of its messages fails. Default `block`: its later messages wait behind the failed one, even
   * when that is parked. `skip`: they are delivered, and the order is not preserved for that message.
   */
  readonly aggregate: 'block' | 'skip'
}

const defaults: RelayPolicy = {
  batch: 200,
  concurrency: 8,
  leaseMs: 30_000,
  timeoutMs: 15_000,
  attemptsMax: 10,
  crashesMax: 3,
  backoffMs: 1_000,
  backoffMsMax: 300_000,
  aggregate: 'block',
}

/** With more, one statement would lock more rows than a database handles well. */
const batchMax = 1_000

export const policyChecks: ChecksOf<RelayPolicy> = {
  batch: wholeUpTo(batchMax),
  concurrency: count,
  leaseMs: waitedMs,
  timeoutMs: waitedMs,
  attemptsMax: count,
  crashesMax: count,
  backoffMs: storedMs,
  backoffMsMax: storedMs,
  aggregate: oneOf('block', 'skip'),
}

export const targetsCheck: Check = recordOf(having('a target (httpTarget, functionTarget or a broker)', 'deliver'))

const relayChecks: ChecksOf<RelayOptions> = {
  ...policyChecks,
  outbox: anything,
  targets: targetsCheck,
  clock: anything,
  telemetry: anything,
}

export function checkedPolicy(options: RelayOptions): RelayPolicy {
  checkOptions('createRelay', options, relayChecks)
  checkConcurrency(options.targets)
  const policy = { ...defaults }
  for (const name of Object.keys(defaults) as (keyof RelayPolicy)[]) {
    if (options[name] !== undefined) Object.assign(policy, { [name]: options[name] })
  }
  return policy
}

function checkConcurrency(targets: RelayOptions['targets']): void {
  for (const [topic, { concurrency }] of Object.entries(targets)) {
    if (concurrency === undefined || count.fits(concurrency)) continue
    throw misconfigured(
      `createRelay: concurrency of the target for ${topic} must be ${count.wants} (got ${shown(concurrency)})`,
    )
  }
}
