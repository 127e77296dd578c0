/** The checker: a pure function of the recorded histories. */
import { checkAnswers, executedKeys } from './answers.ts'
import { checkEnd } from './end.ts'
import { type Evidence, groupBy, type Violation } from './facts.ts'
import { countHardCases, type HardCase, hardCasesOf } from './hard-cases.ts'
import { checkProofs } from './proofs.ts'

export interface Report {
  readonly verdict: 'passed' | 'failed' | 'inconclusive'
  readonly counts: Readonly<Record<string, number>>
  readonly hardCases: Readonly<Partial<Record<HardCase, number>>>
  readonly faults: Readonly<Record<string, number>>
  readonly violations: readonly Violation[]
}

export function check(evidence: Evidence): Report {
  const violations = [...checkAnswers(evidence), ...checkEnd(evidence), ...checkProofs(evidence)]
  const met = countHardCases(evidence)
  const conclusive = hardCasesOf(evidence.facts.terms).every(name => (met[name] ?? 0) > 0)
  const passed = conclusive ? 'passed' : 'inconclusive'
  return {
    verdict: violations.length > 0 ? 'failed' : passed,
    counts: countAll(evidence, violations),
    hardCases: met,
    faults: faultsByKind(evidence),
    violations,
  }
}

function countAll(evidence: Evidence, violations: readonly Violation[]): Record<string, number> {
  const { clients, facts, apps } = evidence
  const keysOf = (events: Evidence['clients']) => new Set(events.map(({ key }) => key)).size
  const final = clients.filter(({ type, misuse }) => type === 'ok' && misuse !== true)
  const metric = (name: string) => apps.filter(event => event.type === 'metric' && event.name === name).length
  const broken = (...kinds: Violation['kind'][]) => violations.filter(({ kind }) => kinds.includes(kind)).length
  return {
    operations: keysOf(clients),
    requests: clients.filter(({ type }) => type === 'invoke').length,
    acknowledged: keysOf(final.filter(({ status = 0 }) => status < 300)),
    declined: keysOf(final.filter(({ status }) => status === 402)),
    executed: executedKeys(evidence),
    duplicates: broken('twice'),
    lost: broken('lost'),
    'other violations': violations.length - broken('twice', 'lost'),
    unknown: facts.keys.filter(({ state }) => state === 'unknown').length,
    parked: facts.keys.filter(({ parked }) => parked).length,
    takeovers: metric('takeover'),
    'stale writes refused': metric('claim_lost'),
    'answers not stored': clients.filter(({ unstored }) => unstored === true).length,
    ...countProofs(evidence),
    'receipts written': facts.receipts.length,
    'receipts arrived': evidence.receipts.length,
  }
}

/** Evidence by source, and how much of it settled a row. */
function countProofs({ facts, webhooks }: Evidence): Record<string, number> {
  const counts: Record<string, number> = { 'ever unknown': new Set(facts.unknowns.map(({ key }) => key)).size }
  for (const [source, proofs] of groupBy(facts.proofs, ({ source }) => source)) {
    counts[`evidence: ${source}`] = proofs.length
    counts[`settled by ${source}`] = proofs.filter(({ applied }) => applied).length
  }
  for (const [how, sent] of groupBy(webhooks, ({ how }) => how)) {
    const accepted = sent.filter(({ status }) => status === 200).length
    counts[`webhooks ${how}`] = sent.length
    counts[`webhooks ${how}, accepted`] = accepted
  }
  return counts
}

function faultsByKind({ nemesis }: Evidence): Record<string, number> {
  const kinds = [...groupBy(nemesis, ({ kind }) => kind)].map(([kind, events]): [string, number] => [
    kind,
    events.length,
  ])
  return Object.fromEntries(kinds.sort(([a], [b]) => (a < b ? -1 : 1)))
}
