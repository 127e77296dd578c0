/** The model as a `Store` of one process: every call goes over the network. */
import type { Outbox } from '../../src/ports/outbox.ts'
import type { Steps } from '../../src/ports/steps.ts'
import type { Store, TransactionEnd, Transactor } from '../../src/ports/store.ts'
import type { History } from './history.ts'
import type { ModelStore } from './model-store.ts'
import type { ModelTransactions, ModelTx } from './model-transactions.ts'
import { ConnectionLost, type Network } from './network.ts'
import { remoteReconciliation } from './remote-reconciliation.ts'
import type { Process, World } from './world.ts'

export interface Place {
  readonly world: World
  readonly net: Network
  readonly store: ModelStore
  readonly transactions: ModelTransactions
  readonly history: History
}

export function remoteStore(place: Place, process: Process): Store<ModelTx> {
  const { net, store } = place
  const ask = <T>(label: string, serve: () => T): Promise<T> => net.call(process, label, answer => answer(serve()))
  return {
    name: 'model',
    traits: {
      transactional: true,
      durable: true,
      clock: 'store',
      processes: 'many',
      fence: 'dense',
      connections: undefined,
    },
    transactor: transactor(place, process),
    steps: steps(place, process),
    outbox: outbox(place, process),
    reconciliation: remoteReconciliation(place, process),
    claim: request => ask('claim', () => store.claim(request)),
    enqueue: request => ask('enqueue', () => store.enqueue(request)),
    read: id => ask('read', () => store.read(id)),
    heartbeat: (claim, leaseMs) => ask('heartbeat', () => store.heartbeat(claim, leaseMs)),
    complete: (claim, outcome, retentionMs) => ask('complete', () => store.complete(claim, outcome, retentionMs)),
    fail: (claim, failure) => ask(`fail ${failure.to}`, () => store.fail(claim, failure)),
    release: (id, claimId) => ask('release', () => store.release(id, claimId)),
    releaseMany: claims => ask('release many', () => store.releaseMany(claims)),
    sweep: options => ask('sweep', () => store.sweep(options)),
    resumable: options => ask('resumable', () => store.resumable(options)),
    park: (claim, cause) => ask(`park ${cause}`, () => store.park(claim, cause)),
    reap: options => ask('reap', () => store.reap(options)),
    list: notSimulated,
    inspect: id => ask('inspect', () => ({ record: store.read(id), evidence: store.evidenceOf(id), audit: [] })),
    settle: notSimulated,
    forget: notSimulated,
    unpark: notSimulated,
  }
}

/** The operator of the simulation acts on the model itself. */
async function notSimulated(): Promise<never> {
  throw new Error('not part of the simulation')
}

function steps({ net, store, transactions, history }: Place, process: Process): Steps<ModelTx> {
  const ask = <T>(label: string, serve: () => T): Promise<T> => net.call(process, label, answer => answer(serve()))
  return {
    readJournal: id =>
      ask('read journal', () => {
        const row = store.rows.get(id)
        if (row !== undefined) history.journalRead(row)
        return store.journal(id)
      }),
    enterPhase: (tx, claim) => net.call(process, 'enter phase', answer => transactions.enterPhase(tx, claim, answer)),
    recordPhase: (tx, claim, phase, leaseMs) =>
      ask(`record phase ${phase.name}`, () => transactions.recordPhase(tx, claim, phase, leaseMs)),
    openIntent: (claim, intent, leaseMs) =>
      ask(`intent ${intent.name}`, () => store.openIntent(claim, intent, leaseMs)),
    recordResult: (claim, effect, leaseMs) => ask('result', () => store.recordResult(claim, effect, leaseMs)),
  }
}

function outbox({ net }: Place, process: Process): Outbox<ModelTx> {
  return {
    lanes: 1,
    append: (tx, { topic, aggregate = '', payload }) =>
      net.call(process, `append to ${topic}`, answer => {
        tx.writes.push({ id: aggregate, name: `outbox ${topic}`, value: Buffer.from(payload).toString() })
        answer(undefined)
      }),
    leaseLane: notSimulated,
    renewLane: notSimulated,
    releaseLane: notSimulated,
    next: notSimulated,
    settle: notSimulated,
    parked: notSimulated,
    redrive: notSimulated,
    redrives: notSimulated,
    downstreamId: notSimulated,
    prune: async () => 0,
    lag: notSimulated,
  }
}

function transactor(place: Place, process: Process): Transactor<ModelTx> {
  const { world, net, store, transactions } = place
  /** The server notices a lost connection by and by, and holds the locks until then. */
  const hangUp = (tx: ModelTx) => world.at(net.noticedAfterMs(), () => transactions.rollback(tx))
  return {
    async transaction(work) {
      const tx = await net.call<ModelTx>(process, 'begin', answer => answer(transactions.begin()))
      const died = () => hangUp(tx)
      process.onCrash.add(died)
      try {
        if ((await work(tx)) === 'commit') return await commit(place, process, tx)
        transactions.rollback(tx)
        return { kind: 'rolled-back' }
      } catch (error) {
        if (error instanceof ConnectionLost) hangUp(tx)
        else transactions.rollback(tx)
        throw error
      } finally {
        process.onCrash.delete(died)
      }
    },
    adopt: notSimulated,
    endOf: () => 'open',
    reserve: (tx, request) => net.call(process, 'reserve', answer => answer(transactions.reserve(tx, request))),
    record: (tx, request, outcome, reservedFence) =>
      net.call(process, 'record', answer => answer(transactions.record(tx, request, outcome, reservedFence))),
    readAfterCommit: id =>
      net.call(process, 'read after commit', answer => transactions.whenFree(id, () => answer(store.read(id)))),
  }
}

/** COMMIT is sent: from here on only the server knows how it ends. */
function commit({ world, net, transactions }: Place, process: Process, tx: ModelTx): Promise<TransactionEnd> {
  return new Promise(resolve => {
    if (!process.alive) return
    const fate = net.fate()
    world.tell(() => `${process.name} → COMMIT${fate === 'arrives' ? '' : ` (${fate})`}`)
    const tell = (delayMs: number, end: TransactionEnd) => world.deliver(process, delayMs, () => resolve(end))
    const doubt = () => tell(net.noticedAfterMs(), { kind: 'commit-unknown', cause: new ConnectionLost('COMMIT') })
    world.at(net.wayMs(), () => {
      const rolledBack = fate === 'call lost' || world.chance.happens(world.faults.conflict)
      if (rolledBack) transactions.rollback(tx)
      const end = rolledBack ? 'conflict' : transactions.commit(tx)
      world.tell(() => `  COMMIT of ${process.name}: ${end}`)
      if (fate !== 'arrives') return doubt()
      tell(net.wayMs(), end === 'conflict' ? { kind: end, cause: new Error('serialization failure') } : { kind: end })
    })
  })
}
