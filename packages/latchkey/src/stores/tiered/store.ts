/** A store with a cache in front of it, assembled. What is not named here is the store's own. */
import type { Clock } from '../../ports/clock.ts'
import type { Store } from '../../ports/store.ts'
import type { StoredValue } from '../../ports/faculties/values.ts'
import type { Tier } from './cache/tier.ts'
import { readThrough, waitMsMax } from './read-through.ts'
import { tieredTransactor } from './transactor.ts'

export function withTier<S extends Store>(store: S, tier: Tier, clock: Clock): S {
  const through = readThrough(tier, clock)
  const { transactor, erasure, values, auditRecords, admin } = store
  let recording: Store | undefined
  const tiered: S = {
    ...store,
    traits: {
      ...store.traits,
      // Of a store that learns it from its server.
      get durable() {
        return store.traits.durable
      },
      queueMsMax: (store.traits.queueMsMax ?? 0) + waitMsMax,
    },
    claim: request => through(request.identity, () => store.claim(request)),
    enqueue: request => through(request.identity, () => store.enqueue(request)),
    read: async id => tier.local(id) ?? store.read(id),
    forget: (id, act) => tier.whileBuried(id, () => store.forget(id, act)),
    ...(transactor && { transactor: tieredTransactor(transactor, tier) }),
    ...(erasure && {
      erasure: {
        ...erasure,
        // Which rows are erased, and when, only the database knows.
        async mark(scope) {
          await tier.exclude(scope)
          return erasure.mark(scope)
        },
      },
    }),
    ...(admin && {
      admin: {
        ...admin,
        act: request =>
          request.act.kind === 'forget' ? tier.whileBuried(request.id, () => admin.act(request)) : admin.act(request),
      },
    }),
    ...(values && {
      values: {
        ...values,
        async replace(before, after) {
          const id = cachedId(before)
          if (id !== undefined) await tier.bury(id)
          return values.replace(before, after)
        },
      },
    }),
    ...(auditRecords && {
      auditRecords: {
        ...auditRecords,
        recording() {
          const below = auditRecords.recording()
          return (recording ??= below === store ? tiered : withTier(below, tier, clock))
        },
      },
    }),
  }
  return tiered
}

/** Of a value that an entry contains: under its old key, it could not be opened for as long as the entry lives. */
function cachedId(value: StoredValue): string | undefined {
  if (value.kind === 'outcome') return value.id
  return value.kind === 'text' && value.column === 'description' ? value.id : undefined
}
