/** A run that did not meet a hard case proves nothing about it. */
import { type Evidence, groupBy, type Proof, type Terms } from './facts.ts'
import { negativesOf } from './proofs.ts'
import type { StoreKind } from '../store-kind.ts'

const crashCases = [
  'stale write refused',
  'resumed mid-way after a crash',
  'deferred work resumed after a crash',
  'unknown entered by its owner',
  'unknown entered by the sweeper',
  'parked',
] as const
/** Of a store with transactions. */
const commitCases = ['commit unknown', 'outbox duplicate delivered'] as const
/** Of a store without. */
const answerCases = ['stale answer refused', 'reply to an answer lost', 'redis killed'] as const
/** Of a cache in front of the database. */
const cacheCases = ['answered from the cache', 'cache flushed', 'cache killed', 'cache frozen'] as const
const settlingCases = [
  'settled by look-up',
  'settled by ledger',
  'late owner stored evidence',
  'called again after "never happened"',
  'other account refused',
] as const
const webhookCases = [
  'settled by webhook',
  'webhook before the response',
  'stored evidence used later',
  'forged webhook refused',
  'stale webhook refused',
  'replayed webhook refused',
] as const

type Counts<Cases extends readonly string[]> = Record<Cases[number], number>
type StoreCases = typeof commitCases | typeof answerCases | typeof cacheCases
type Cases = typeof crashCases | StoreCases | typeof settlingCases | typeof webhookCases
export type HardCase = Cases[number]

const ofStore: Readonly<Record<StoreKind, readonly HardCase[]>> = {
  postgres: commitCases,
  redis: answerCases,
  tiered: [...commitCases, ...cacheCases],
}

/** The cases that a run on these terms can meet. */
export function hardCasesOf({ store, webhooks }: Pick<Terms, 'store' | 'webhooks'>): readonly HardCase[] {
  return [...crashCases, ...ofStore[store], ...settlingCases, ...(webhooks ? webhookCases : [])]
}

export function countHardCases(evidence: Evidence): Partial<Record<HardCase, number>> {
  const { store, webhooks } = evidence.facts.terms
  return {
    ...countCrashes(evidence),
    ...(store === 'redis' ? countAnswers(evidence) : countCommits(evidence)),
    ...(store === 'tiered' ? countCache(evidence) : {}),
    ...countSettling(evidence),
    ...(webhooks ? countWebhooks(evidence) : {}),
  }
}

function countCrashes({ apps, clients, facts }: Evidence): Counts<typeof crashCases> {
  const crashed = new Set(facts.keys.filter(({ crashes }) => crashes > 0).map(({ key }) => key))
  const metric = metricsOf(apps)
  const resumed = apps.filter(({ type, key = '' }) => type === 'resumed-midway' && crashed.has(key))
  const zombies = metric('zombie_key').filter(
    // A payout is never run again: its dead lease can only become unknown.
    ({ operation, detail }) => detail === 'unknown' || operation === 'payouts.create',
  )
  return {
    'stale write refused': metric('claim_lost').length,
    'resumed mid-way after a crash': resumed.length,
    'deferred work resumed after a crash': resumed.filter(({ key }) => key?.startsWith('refunds')).length,
    'unknown entered by its owner': byOwner({ clients, facts }),
    'unknown entered by the sweeper': zombies.length,
    parked: facts.keys.filter(({ parked }) => parked).length,
  }
}

function countCommits({ apps, receipts }: Evidence): Counts<typeof commitCases> {
  const read = apps.filter(({ type, name }) => type === 'fault-point' && name === 'read after commit:before')
  return { 'commit unknown': read.length, 'outbox duplicate delivered': duplicates(receipts) }
}

function countAnswers({ apps, nemesis }: Evidence): Counts<typeof answerCases> {
  const faults = faultsOf(nemesis)
  return {
    // A transfer has no steps: its owner is refused at its answer, or never.
    'stale answer refused': metricsOf(apps)('claim_lost').filter(({ operation }) => operation === 'transfers.create')
      .length,
    'reply to an answer lost': faults('answer-reply-swallowed'),
    'redis killed': faults('redis-killed'),
  }
}

function countCache({ apps, nemesis }: Evidence): Counts<typeof cacheCases> {
  const faults = faultsOf(nemesis)
  const hits = apps.filter(({ type }) => type === 'cache-hits').map(({ detail }) => Number(detail))
  return {
    'answered from the cache': hits.reduce((sum, more) => sum + more, 0),
    'cache flushed': faults('cache-flushed'),
    'cache killed': faults('cache-killed'),
    'cache frozen': faults('cache-frozen'),
  }
}

function countSettling(evidence: Evidence): Counts<typeof settlingCases> {
  const { clients, facts } = evidence
  return {
    'settled by look-up': positives(facts.proofs, 'look-up').length,
    'settled by ledger': positives(facts.proofs, 'ledger').length,
    'late owner stored evidence': facts.proofs.filter(({ source }) => source === 'late-owner').length,
    'called again after "never happened"': calledAgain(evidence),
    'other account refused': clients.filter(({ foreign, status }) => foreign === true && status === 404).length,
  }
}

function countWebhooks({ apps, facts, webhooks }: Evidence): Counts<typeof webhookCases> {
  const refused = (how: string) => webhooks.filter(event => event.how === how && event.status === 400).length
  const kept = metricsOf(apps)('reconcile.resolved').filter(({ detail }) => detail === 'kept')
  return {
    'settled by webhook': positives(facts.proofs, 'webhook').length,
    'webhook before the response': beforeTheResponse({ apps, facts }),
    'stored evidence used later': kept.length,
    'forged webhook refused': refused('forged'),
    'stale webhook refused': refused('stale'),
    'replayed webhook refused': refused('replayed'),
  }
}

function faultsOf(nemesis: Evidence['nemesis']): (wanted: string) => number {
  return wanted => nemesis.filter(({ kind }) => kind === wanted).length
}

function metricsOf(apps: Evidence['apps']): (name: string) => Evidence['apps'] {
  return name => apps.filter(event => event.type === 'metric' && event.name === name)
}

function positives(proofs: readonly Proof[], from: Proof['source']): readonly Proof[] {
  return proofs.filter(({ source, applied, verdict }) => source === from && applied && verdict !== 'never-happened')
}

/** Under another downstream key, after evidence that the first one had no effect. */
function calledAgain(evidence: Evidence): number {
  const given = new Set(
    negativesOf(evidence)
      .filter(({ epoch }) => epoch !== null)
      .map(({ key }) => key),
  )
  const asked = evidence.apps.filter(({ type, key = '' }) => type === 'asked' && given.has(key))
  const keys = [...groupBy(asked, ({ key = '' }) => key).values()]
  return keys.filter(questions => new Set(questions.map(({ name }) => name)).size > 1).length
}

/** Stored while the call that it is about was still waiting for its answer. */
function beforeTheResponse({ apps, facts }: Pick<Evidence, 'apps' | 'facts'>): number {
  const ends = groupBy(
    apps.filter(({ type }) => type === 'charge-ended'),
    ({ key = '' }) => key,
  )
  const webhooks = facts.proofs.filter(({ source }) => source === 'webhook')
  return webhooks.filter(({ key, at }) => (ends.get(key) ?? []).some(({ at: ended = 0 }) => at < ended)).length
}

/** Its own caller got 504, or the row became unknown without a crash. */
function byOwner({ clients, facts }: Pick<Evidence, 'clients' | 'facts'>): number {
  const reported = clients.filter(({ status, code }) => status === 504 && code === 'outcome-unknown')
  const written = facts.keys.filter(({ state, crashes }) => state === 'unknown' && crashes === 0)
  return new Set([...reported, ...written].map(({ key }) => key)).size
}

/** Arrivals of a message that had reached its consumer before. */
function duplicates(arrivals: Evidence['receipts']): number {
  const reached = arrivals.filter(({ answered }) => answered !== 'failed')
  return [...groupBy(reached, ({ dedupId }) => dedupId).values()].reduce((sum, copies) => sum + copies.length - 1, 0)
}
