/** Each call of the store once, on rows in the states that they are for: what it needs of the server, it needs here. */
import { randomUUID } from 'node:crypto'
import type { RedisStore } from '../../src/stores/redis/store.ts'
import { claimRequest, hourMs, outcome, own } from './requests.ts'

const act = { by: 'a test', reason: 'every call' } as const
const retryNow = { to: 'failed_retryable', errorCode: 'x', dueInMs: 0 } as const
const unknown = { to: 'unknown', errorCode: 'x', dueInMs: 0 } as const
const work = { version: 1, input: '{}', deadlineInMs: hourMs } as const

export async function everyCall(store: RedisStore, name: string): Promise<void> {
  await guarded(store, name)
  await phased(store, name)
  await settled(store, name)
  await store.check()
  await store.sweep({ limit: 10 })
  await store.resumable({ limit: 10 })
  await store.reap({ limit: 10 })
  await store.list({ limit: 10 })
}

async function guarded(store: RedisStore, name: string): Promise<void> {
  const done = await own(store, `${name} done`, { description: 'a', tombstoneMs: hourMs })
  await store.heartbeat(done, hourMs)
  await store.complete(done, outcome('done'), 48 * hourMs)
  await store.complete({ ...done, fence: 1 }, outcome('late'), hourMs)
  await store.claim(claimRequest(`${name} done`))
  await store.inspect(done.id)
  await store.forget(done.id, act)
  await store.fail(await own(store, `${name} failed`), retryNow)
  const lost = await own(store, `${name} failed`)
  await store.release(lost.id, lost.claimId)
  await store.releaseMany([await own(store, `${name} lost`)])
  await store.sweep({ limit: 1, id: (await own(store, `${name} dead`, { leaseMs: 0 })).id })
}

async function phased(store: RedisStore, name: string): Promise<void> {
  const { recovery: _recovery, leaseMs: _lease, ...job } = claimRequest(`${name} job`)
  await store.enqueue({ ...job, work })
  const claim = await own(store, `${name} phased`, { recovery: 'resume', work })
  const intent = { position: 0, name: 'charge', epoch: 0, key: randomUUID(), windowMs: hourMs }
  await store.steps.openIntent(claim, intent, hourMs)
  await store.reconciliation.findEffect(intent.key)
  await store.steps.recordResult(claim, { position: 0, value: '1' }, hourMs)
  await store.steps.readJournal(claim.id)
  await store.park(claim, 'poison')
  await store.unpark(claim.id, act)
}

async function settled(store: RedisStore, name: string): Promise<void> {
  const { reconciliation, ledgers } = store
  const claim = await own(store, `${name} unknown`)
  await store.fail(claim, unknown)
  const verdict = { kind: 'happened', outcome: outcome('found') } as const
  const delivery = { signedAtMs: 1 }
  const kept = await reconciliation.keep(
    { id: claim.id, effect: undefined },
    { source: 'webhook', ref: name, verdict, delivery },
  )
  await reconciliation.waiting({ limit: 10 })
  await reconciliation.unknowns()
  const [lookup] = await reconciliation.lookups({
    operation: 'payments.create',
    firstInMs: 0,
    leaseMs: hourMs,
    limit: 9,
  })
  if (kept.kind !== 'kept' || lookup === undefined) throw new Error(`${kept.kind}, and no look-up`)
  await reconciliation.nextLookUpInMs(claim.id)
  await reconciliation.postpone(lookup, hourMs)
  await reconciliation.giveUp(lookup, 'nobody knows')
  await reconciliation.apply(kept.evidenceId, { quarantineMs: 0, retentionMs: hourMs })
  await reconciliation.forgetDeliveries({ olderThanMs: -hourMs, limit: 10 })
  const other = await own(store, `${name} settled`)
  await store.fail(other, unknown)
  await store.settle(other.id, { kind: 'never-happened' }, act, hourMs)
  const begun = await ledgers.begin(name, { everyMs: hourMs, leaseMs: hourMs })
  if (begun.kind !== 'begun') throw new Error(begun.kind)
  await ledgers.renew(begun.run, hourMs)
  await ledgers.end(begun.run, { retryInMs: 0 })
  await ledgers.last(name)
}
