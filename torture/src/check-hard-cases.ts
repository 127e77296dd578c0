/** A run that never met the hard cases has proved nothing about them. */
import { type Evidence, groupBy } from './check-facts.ts'

export const hardCases = [
  'stale write refused',
  'resumed mid-way after a crash',
  'unknown entered by its owner',
  'unknown entered by the sweeper',
  'commit unknown',
  'parked',
  'outbox duplicate delivered',
] as const

export type HardCase = (typeof hardCases)[number]

export function countHardCases({ apps, clients, facts, receipts }: Evidence): Record<HardCase, number> {
  const crashed = new Set(facts.keys.filter(({ crashes }) => crashes > 0).map(({ key }) => key))
  const metric = (name: string) => apps.filter(event => event.type === 'metric' && event.name === name)
  return {
    'stale write refused': metric('claim_lost').length,
    'resumed mid-way after a crash': apps.filter(({ type, key = '' }) => type === 'resumed-midway' && crashed.has(key))
      .length,
    'unknown entered by its owner': byOwner({ clients, facts }),
    // A payout is never run again: its dead lease can only become unknown.
    'unknown entered by the sweeper': metric('zombie_key').filter(
      ({ operation, detail }) => detail === 'unknown' || operation === 'payouts.create',
    ).length,
    'commit unknown': apps.filter(({ type, name }) => type === 'fault-point' && name === 'read after commit:before')
      .length,
    parked: facts.keys.filter(({ parked }) => parked).length,
    'outbox duplicate delivered': duplicates(receipts),
  }
}

/** Its own caller heard of it, or the row says that nobody had to die for it. */
function byOwner({ clients, facts }: Pick<Evidence, 'clients' | 'facts'>): number {
  const heard = clients.filter(({ status, code }) => status === 504 && code === 'outcome-unknown')
  const written = facts.keys.filter(({ state, crashes }) => state === 'unknown' && crashes === 0)
  return new Set([...heard, ...written].map(({ key }) => key)).size
}

/** Arrivals of a message that had reached its consumer before. */
function duplicates(arrivals: Evidence['receipts']): number {
  const reached = arrivals.filter(({ answered }) => answered !== 'failed')
  return [...groupBy(reached, ({ dedupId }) => dedupId).values()].reduce((sum, copies) => sum + copies.length - 1, 0)
}
