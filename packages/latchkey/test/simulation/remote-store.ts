/** The database as a `Store` of one process: every call goes over the network. */
import type { Outbox } from '../../src/ports/outbox.ts'
import type { FoundVerdict } from '../../src/ports/reconciliation.ts'
import type { Phases, Steps } from '../../src/ports/steps.ts'
import type { Store, TransactionEnd, Transactor } from '../../src/ports/store.ts'
import { askDatabase, type Place } from './ask-database.ts'
import type { Cause } from './database.ts'
import { ConnectionLost } from './network.ts'
import { remoteReconciliation } from './remote-reconciliation.ts'
import type { ServerTx } from './transactions.ts'
import type { Process } from './world.ts'

export function remoteStore(place: Place, process: Process): Store<ServerTx> {
  const { ask, change } = askDatabase(place, process)
  const owner = (what: string, verdict: FoundVerdict = { kind: 'never-happened' }): Cause => ({
    by: 'owner',
    what,
    evidence: { source: 'late-owner', verdict },
  })
  return {
    name: 'simulated',
    traits: {
      kinds: ['guarded', 'atomic', 'phased', 'deferred'],
      transactional: true,
      durable: true,
      clock: 'store',
      processes: 'many',
      fence: 'dense',
      faculties: ['transactions', 'steps', 'phases', 'outbox', 'reconciliation'],
      connections: undefined,
    },
    transactor: transactor(place, process),
    steps: steps(place, process),
    phases: phases(place, process),
    outbox: outbox(place, process),
    reconciliation: remoteReconciliation(place, process),
    claim: request => change('claim', { by: 'request', what: 'claim' }, store => store.claim(request)),
    enqueue: request => change('enqueue', { by: 'request', what: 'enqueue' }, store => store.enqueue(request)),
    read: id => ask('read', store => store.read(id)),
    heartbeat: (claim, leaseMs) => change('heartbeat', owner('heartbeat'), store => store.heartbeat(claim, leaseMs)),
    complete: (claim, outcome, retentionMs) =>
      change('complete', owner('complete', { kind: 'happened', outcome }), store =>
        store.complete(claim, outcome, retentionMs),
      ),
    fail: (claim, failure) =>
      change(`fail ${failure.to}`, owner(`fail ${failure.errorCode}`), store => store.fail(claim, failure)),
    release: (id, claimId) => change('release', owner('release'), store => store.release(id, claimId)),
    releaseMany: claims => change('release many', owner('release'), store => store.releaseMany(claims)),
    sweep: options => change('sweep', { by: 'sweeper', what: 'sweep' }, store => store.sweep(options)),
    resumable: options => ask('resumable', store => store.resumable(options)),
    park: (claim, cause) => change(`park ${cause}`, owner(`park ${cause}`), store => store.park(claim, cause)),
    reap: options => change('reap', { by: 'reaper', what: 'reap' }, store => store.reap(options)),
    list: notSimulated,
    inspect: id => ask('inspect', store => store.inspect(id)),
    settle: notSimulated,
    forget: notSimulated,
    unpark: notSimulated,
  }
}

/** The operator of the simulation acts on the database itself. */
async function notSimulated(): Promise<never> {
  throw new Error('not part of the simulation')
}

function steps(place: Place, process: Process): Steps {
  const { database, history } = place
  const { ask, change } = askDatabase(place, process)
  return {
    readJournal: id =>
      ask('read journal', store => {
        const row = database.rows.get(id)
        if (row !== undefined) history.journalRead(row)
        return store.steps.readJournal(id)
      }),
    openIntent: (claim, intent, leaseMs) =>
      change(`intent ${intent.name}`, { by: 'owner', what: `intent ${intent.name}` }, store =>
        store.steps.openIntent(claim, intent, leaseMs),
      ),
    recordResult: (claim, effect, leaseMs) =>
      change('result', { by: 'owner', what: 'result' }, store => store.steps.recordResult(claim, effect, leaseMs)),
  }
}

function phases({ net, transactions }: Place, process: Process): Phases<ServerTx> {
  return {
    enterPhase: (tx, claim) => net.call(process, 'enter phase', () => transactions.enterPhase(tx, claim)),
    recordPhase: (tx, claim, phase, leaseMs) =>
      net.call(process, `record phase ${phase.name}`, () => transactions.recordPhase(tx, claim, phase, leaseMs)),
  }
}

function outbox({ net }: Place, process: Process): Outbox<ServerTx> {
  return {
    lanes: 1,
    append: (tx, message) =>
      net.call(process, `append to ${message.topic}`, () => {
        const { topic, aggregate = '', payload } = message
        tx.writes.push({ id: aggregate, name: `outbox ${topic}`, value: Buffer.from(payload).toString(), message })
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

function transactor(place: Place, process: Process): Transactor<ServerTx> {
  const { world, net, transactions } = place
  /** The server notices a lost connection by and by, and holds the locks until then. */
  const hangUp = (tx: ServerTx) => world.at(net.noticedAfterMs(), () => transactions.rollback(tx))
  return {
    async transaction(work) {
      const tx = await net.call(process, 'begin', transactions.begin)
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
    reserve: (tx, request) => net.call(process, 'reserve', () => transactions.reserve(tx, request)),
    record: (tx, request, outcome, reservedFence) =>
      net.call(process, 'record', () => transactions.record(tx, request, outcome, reservedFence)),
    readAfterCommit: id => net.call(process, 'read after commit', () => transactions.readWhenFree(id)),
  }
}

/** COMMIT is sent: from here on only the server knows how it ends. */
function commit({ world, net, transactions, history }: Place, process: Process, tx: ServerTx): Promise<TransactionEnd> {
  return new Promise(resolve => {
    if (!process.alive) return
    const fate = net.fate()
    world.trace(() => `${process.name} → COMMIT${fate === 'arrives' ? '' : ` (${fate})`}`)
    const reply = (delayMs: number, end: TransactionEnd) => world.deliver(process, delayMs, () => resolve(end))
    const doubt = () => reply(net.noticedAfterMs(), { kind: 'commit-unknown', cause: new ConnectionLost('COMMIT') })
    const broken = (error: unknown) => history.break(`a COMMIT failed: ${String(error)}`)
    const answer = (end: 'committed' | 'conflict' | 'rolled-back') => {
      world.trace(() => `  COMMIT of ${process.name}: ${end}`)
      if (fate !== 'arrives') return doubt()
      reply(net.wayMs(), end === 'conflict' ? { kind: end, cause: new Error('serialization failure') } : { kind: end })
    }
    world.at(net.wayMs(), () => {
      const rolledBack = fate === 'call lost' || world.chance.happens(world.faults.conflict)
      if (!rolledBack) return void transactions.commit(tx).then(answer, broken)
      transactions.rollback(tx)
      answer('conflict')
    })
  })
}
