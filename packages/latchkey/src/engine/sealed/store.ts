/**
 * A store over which every value of the application's is sealed on its way in and opened on its way out. The store below knows nothing of
 * it: it stores an outcome, a text or a message as always. Scope, operation, state, times, statuses, names of steps and error codes
 * stay readable.
 */
import type { ClaimRequest, EnqueueRequest, Faculty, Store } from '../../ports/store.ts'
import { sealedAdmin } from './admin.ts'
import { sealedInbox } from './inbox.ts'
import type { Keyring } from './keyring.ts'
import { sealedOutbox } from './outbox.ts'
import { sealOutcome } from './outcome.ts'
import { openJournal, recordOpener } from './record.ts'
import { sealedReconciliation, sealVerdict } from './reconciliation.ts'
import { sealedReferences } from './references.ts'
import { sealText } from './seal.ts'
import { sealedPhases, sealedSteps, sealWork } from './steps.ts'
import { type Described, sealedTransactor } from './transactor.ts'

/** Values are replaced in the store below: over it, each would be opened and sealed again. Which store records lines is chosen before it is sealed. */
const ofBelow: readonly Faculty[] = ['values', 'auditRecords']

export function sealedStore<Tx>(store: Store<Tx>, ring: Keyring): Store<Tx> {
  const openRecord = recordOpener(ring)
  const { transactor, steps, phases, outbox, reconciliation, inbox, references, admin, check, observe } = store
  const sealDescription = <R extends Described>(request: R) => describe(ring, request)
  const isDense = store.traits.fence === 'dense'
  return {
    name: store.name,
    traits: { ...store.traits, faculties: store.traits.faculties.filter(faculty => !ofBelow.includes(faculty)) },
    ...(check && { check: () => check.call(store) }),
    ...(observe && { observe: observer => observe.call(store, observer) }),
    transactor: transactor && sealedTransactor(transactor, { ring, openRecord, sealDescription, isDense }),
    steps: steps && sealedSteps(steps, ring),
    phases: phases && sealedPhases(phases, ring),
    outbox: outbox && sealedOutbox(outbox, ring),
    reconciliation: reconciliation && sealedReconciliation(reconciliation, ring),
    inbox: inbox && sealedInbox(inbox, ring),
    references: references && sealedReferences(references, ring),
    admin: admin && sealedAdmin(admin, ring, openRecord),
    // They read and write no value of the application's.
    ledgers: store.ledgers,
    erasure: store.erasure,
    quotas: store.quotas,
    ...requestCalls(store, ring, openRecord),
    ...backgroundCalls(store),
    ...operatorCalls(store, ring, openRecord),
  }
}

type RequestCalls = 'claim' | 'enqueue' | 'read' | 'heartbeat' | 'complete' | 'fail' | 'release' | 'releaseMany'
type OpenRecord = ReturnType<typeof recordOpener>

function requestCalls<Tx>(store: Store<Tx>, ring: Keyring, openRecord: OpenRecord): Pick<Store, RequestCalls> {
  return {
    async claim(request) {
      const result = await store.claim(isBare(request) ? request : await sealRequest(ring, request))
      if (result.kind === 'seen') return { ...result, record: await openRecord(result.record) }
      if (result.journal === undefined) return result
      return { ...result, journal: await openJournal(ring, request.identity.id, result.journal) }
    },
    async enqueue(request) {
      const result = await store.enqueue(await sealRequest(ring, request))
      return result.kind === 'seen' ? { ...result, record: await openRecord(result.record) } : result
    },
    read: async id => openRecord(await store.read(id)),
    heartbeat: (claim, leaseMs) => store.heartbeat(claim, leaseMs),
    complete(claim, outcome, retentionMs) {
      const sealed = sealOutcome(ring, claim, outcome)
      if (sealed instanceof Promise) return sealed.then(each => store.complete(claim, each, retentionMs))
      return store.complete(claim, sealed, retentionMs)
    },
    fail: (claim, failure) => store.fail(claim, failure),
    release: (id, claimId) => store.release(id, claimId),
    releaseMany: claims => store.releaseMany(claims),
  }
}

function backgroundCalls<Tx>(store: Store<Tx>): Pick<Store, 'sweep' | 'resumable' | 'park' | 'reap'> {
  return {
    sweep: options => store.sweep(options),
    resumable: options => store.resumable(options),
    park: (claim, cause) => store.park(claim, cause),
    reap: options => store.reap(options),
  }
}

type OperatorCalls = 'list' | 'inspect' | 'settle' | 'forget' | 'unpark'

function operatorCalls<Tx>(store: Store<Tx>, ring: Keyring, openRecord: OpenRecord): Pick<Store, OperatorCalls> {
  return {
    async list(listing) {
      const page = await store.list(listing)
      return { ...page, records: await Promise.all(page.records.map(record => openRecord(record))) }
    },
    async inspect(id) {
      const found = await store.inspect(id)
      return { ...found, record: await openRecord(found.record) }
    },
    async settle(id, verdict, act, retentionMs) {
      const sealed = await sealVerdict(ring, { id, position: undefined }, verdict)
      return store.settle(id, sealed, act, retentionMs)
    },
    forget: (id, act) => store.forget(id, act),
    unpark: (id, act) => store.unpark(id, act),
  }
}

/** It carries nothing to seal. */
function isBare({ description, work }: ClaimRequest): boolean {
  return description === undefined && work === undefined
}

async function describe<R extends Described>(ring: Keyring, request: R): Promise<R> {
  const { description, identity } = request
  if (description === undefined) return request
  return {
    ...request,
    description: await sealText(ring, { identity: identity.id, column: 'description' }, description),
  }
}

async function sealRequest<R extends ClaimRequest | EnqueueRequest>(ring: Keyring, request: R): Promise<R> {
  const { work, identity } = request
  if (work === undefined) return describe(ring, request)
  return { ...(await describe(ring, request)), work: await sealWork(ring, identity.id, work) }
}
