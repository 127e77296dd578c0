/** Runs of ledger comparisons: one at a time under each name, by number and lease. */
import type { LastLedgerRun, LedgerCounts, LedgerRun, Ledgers } from '../../../ports/reconciliation.ts'
import { hexOfName } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { isNil, listOf, numberOf, textOf } from '../connection/reply.ts'
import { type Script, wholeMs } from '../connection/script.ts'
import { ownerResult } from '../keys/owner.ts'

/** A failed run is repeated sooner than `everyMs`, and never later. */
const beginScript: Script = {
  flags: '',
  parts: ['ledger'],
  args: ['everyMs', 'leaseMs'],
  body: `
local run, began, heldUntil, retryAt = unpack(redis.call('HMGET', ledger, 'run', 'began', 'held', 'retry'))
if run then
  local nextAt = math.min(began + everyMs, tonumber(retryAt) or math.huge)
  local dueAt = math.max(tonumber(heldUntil) or 0, nextAt)
  if dueAt > now then return { 'not-due', dueAt - now } end
end
redis.call('HDEL', ledger, 'retry')
redis.call('HSET', ledger, 'began', now, 'held', now + leaseMs)
return { 'begun', redis.call('HINCRBY', ledger, 'run', 1) }`,
}

function runScript(args: readonly string[], body: string): Script {
  return {
    flags: 'allow-oom',
    parts: ['ledger'],
    args: ['ownRun', ...args],
    body: `
local run, heldUntil = unpack(redis.call('HMGET', ledger, 'run', 'held'))
if run ~= ownRun then return 0 end
${body}`,
  }
}

const renewScript: Script = runScript(
  ['leaseMs'],
  `
if not heldUntil then return 0 end
redis.call('HSET', ledger, 'held', now + leaseMs)
return 1`,
)

const countNames = ['compared', 'missing', 'extra', 'different', 'settled'] as const

/** Ended before: the reply to the first write was lost. */
const finishScript: Script = runScript(
  countNames,
  `
if heldUntil then
  redis.call('HDEL', ledger, 'held')
  redis.call('HSET', ledger, 'finished', now, ${countNames.map(name => `'${name}', ${name}`).join(', ')})
end
return 1`,
)

const failScript: Script = runScript(
  ['retryInMs'],
  `
if heldUntil then
  redis.call('HDEL', ledger, 'held')
  redis.call('HSET', ledger, 'retry', now + retryInMs)
end
return 1`,
)

const lastScript: Script = {
  flags: 'no-writes',
  parts: ['ledger'],
  args: [],
  body: `
local last = redis.call('HMGET', ledger, 'finished', ${countNames.map(name => `'${name}'`).join(', ')})
return last[1] and { now - last[1], unpack(last, 2) }`,
}

export function redisLedgers(link: Link): Ledgers {
  const at = ({ name }: Pick<LedgerRun, 'name'>) => hexOfName('ledger', name)
  return {
    async begin(name, { everyMs, leaseMs }) {
      const reply = await link.runAt(beginScript, at({ name }), [wholeMs(everyMs), wholeMs(leaseMs)])
      const [kind, number] = listOf(reply)
      if (textOf(kind) === 'not-due') return { kind: 'not-due', inMs: numberOf(number) }
      return { kind: 'begun', run: { name, run: numberOf(number) } }
    },
    renew: async (run, leaseMs) =>
      ownerResult(await link.runAt(renewScript, at(run), [String(run.run), wholeMs(leaseMs)])),
    async end(run, end) {
      const reply =
        'counts' in end
          ? await link.runAt(finishScript, at(run), [String(run.run), ...countsOf(end.counts)])
          : await link.runAt(failScript, at(run), [String(run.run), wholeMs(end.retryInMs)])
      return ownerResult(reply)
    },
    async last(name): Promise<LastLedgerRun | undefined> {
      const reply = await link.runAt(lastScript, at({ name }))
      if (isNil(reply)) return undefined
      const [finishedAgoMs = 0, compared = 0, missing = 0, extra = 0, different = 0, settled = 0] =
        listOf(reply).map(numberOf)
      return { finishedAgoMs, compared, missing, extra, different, settled }
    },
  }
}

function countsOf(counts: LedgerCounts): string[] {
  return countNames.map(name => String(counts[name]))
}
