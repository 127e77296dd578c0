/** The parts of one run, put together. */
import { chance } from './chance.ts'
import { createDatabase, type Database } from './database.ts'
import { history, type History } from './history.ts'
import { network, type Network } from './network.ts'
import { type Plan, planOf } from './plan.ts'
import { provider, type Provider } from './provider.ts'
import { createRuns, type Runs } from './runs.ts'
import { serverTransactions, type Transactions } from './transactions.ts'
import { type Sender, webhookSender } from './webhooks.ts'
import { createWorld, pauseMsMax, type World } from './world.ts'

export interface Stage {
  readonly plan: Plan
  readonly world: World
  readonly net: Network
  readonly database: Database
  readonly transactions: Transactions
  readonly history: History
  readonly provider: Provider
  readonly runs: Runs
  readonly webhooks: Sender
}

export function setStage(seed: number, traced: boolean): Stage {
  const luck = chance(seed)
  const plan = planOf(luck)
  const world = createWorld({ chance: luck, faults: plan.faults, traced })
  const past: History = history({
    now: () => database.now(),
    // Two store calls, or their limits; and at most one pause.
    callsWithinMs: 4_200 + (plan.faults.pause > 0 ? pauseMsMax : 0),
    rowOf: id => database.rows.get(id),
    underWay: id => outside.underWay(id),
  })
  const database = createDatabase({
    nowMs: world.nowMs,
    changed: change => {
      const { id, before, after, by, what } = change
      const place = `${after?.operation ?? ''} ${id.slice(0, 4)} fence ${after?.fence ?? ''}`
      world.trace(() => `    ${by}: ${what}: ${before?.state ?? 'none'} → ${after?.state ?? 'none'} (${place})`)
      past.changed(change)
    },
  })
  const transactions = serverTransactions(database, { committed: writes => past.committed(writes) })
  const webhooks = webhookSender(world, past)
  const outside = provider({
    world,
    history: past,
    asksInVain: plan.asksInVain,
    // No look-up asks about work that may be repeated.
    announce: entry => plan.webhooks && entry.operation !== 'rerun' && webhooks.announce(entry),
  })
  return {
    plan,
    world,
    database,
    transactions,
    net: network(world, past.break),
    history: past,
    provider: outside,
    runs: createRuns(world),
    webhooks,
  }
}
