/** Evidence about unknown charges: which sources may be believed, and when. */
import { clientKeyOf, type Evidence, groupBy, type Proof, type Violation } from './facts.ts'

export function checkProofs(evidence: Evidence): Violation[] {
  return [...askedInDoubt(evidence), ...tooEarly(evidence), ...disproven(evidence), ...believedWebhooks(evidence)]
}

/** Evidence that allows a charge to be tried again. */
export function negativesOf({ facts }: Evidence): Proof[] {
  return facts.proofs.filter(({ applied, verdict }) => applied && verdict === 'never-happened')
}

interface Moment {
  readonly at: number
  readonly change: 1 | -1
}

/**
 * Where the provider does not recognise keys, a call must not be repeated while an earlier one may have arrived: either it never left this
 * machine, or evidence shows that it never happened.
 */
function askedInDoubt(evidence: Evidence): Violation[] {
  const { apps, facts } = evidence
  const questions = apps.filter(({ key = '' }) => !(facts.terms.dedup && key.startsWith('payments')))
  const moments = [
    ...questions.filter(({ type }) => type === 'asked').map(event => momentOf(event, 1)),
    ...questions
      .filter(({ type, detail }) => type === 'charge-ended' && detail === 'never-left')
      .map(event => momentOf(event, -1)),
    ...negativesOf(evidence).map(proof => momentOf(proof, -1)),
  ]
  return [...groupBy(moments, ({ key }) => key)].flatMap(([key, ofKey]) => {
    let doubts = 0
    // A call that ended in the millisecond in which it began: the sort has put its end first.
    let endedAt: number | undefined
    return ofKey
      .sort((a, b) => a.at - b.at || a.change - b.change)
      .flatMap(({ at, change }): Violation[] => {
        const endsAtOnce = change === 1 && endedAt === at
        endedAt = change === -1 && doubts === 0 ? at : undefined
        doubts = endsAtOnce ? doubts : Math.max(0, doubts + change)
        return doubts < 2 ? [] : [{ kind: 'called-in-doubt', key, detail: `at ${at}, ${doubts} calls are open` }]
      })
  })
}

function momentOf({ key = '', at = 0 }: { key?: string; at?: number }, change: 1 | -1): Moment & { key: string } {
  return { key, at, change }
}

/** A person and the owner itself need not wait for the quarantine; every other source must. */
function tooEarly(evidence: Evidence): Violation[] {
  const { unknowns, terms } = evidence.facts
  const since = groupBy(unknowns, ({ key }) => key)
  return negativesOf(evidence)
    .filter(({ source }) => source !== 'operator' && source !== 'late-owner')
    .flatMap(({ key, source, at }): Violation[] => {
      const before = (since.get(key) ?? []).map(unknown => unknown.since).filter(began => began <= at)
      const waitedMs = at - Math.max(...before, 0)
      if (before.length > 0 && waitedMs >= terms.quarantineMs) return []
      const waited = before.length > 0 ? `${Math.round(waitedMs)} ms after it became unknown` : 'it was never unknown'
      return [{ kind: 'believed-too-early', key, detail: `${source}: ${waited}` }]
    })
}

/** If evidence showed that an effect never happened under a downstream key, there must be no charge under that key. */
function disproven(evidence: Evidence): Violation[] {
  const asked = groupBy(
    evidence.apps.filter(({ type }) => type === 'asked'),
    ({ name = '' }) => name,
  )
  const negatives = groupBy(
    negativesOf(evidence).filter(({ epoch }) => epoch !== null),
    ({ key }) => key,
  )
  return evidence.charges.flatMap((charge): Violation[] => {
    const key = clientKeyOf(charge)
    const firstAsked = Math.min(...(asked.get(charge.key ?? '') ?? []).map(({ at = 0 }) => at))
    const against = (negatives.get(key) ?? []).filter(({ at }) => firstAsked < at)
    return against.map(({ source, at }) => ({
      kind: 'charged-though-disproven',
      key,
      detail: `${JSON.stringify(charge)}, but ${source} reported at ${at} that it never happened`,
    }))
  })
}

/** A webhook that the provider did not sign, or signed long ago, gets a 400. Only the store recognises a copy, and it may be down: 503. */
function believedWebhooks({ webhooks }: Evidence): Violation[] {
  const refusals = { forged: [400], stale: [400], replayed: [400, 503] }
  return webhooks.flatMap(({ how, key, status, detail = '' }): Violation[] => {
    if (how === 'genuine' || how === 'again' || status === undefined || refusals[how].includes(status)) return []
    return [{ kind: 'webhook-believed', key, detail: `${how}: ${status} ${detail}` }]
  })
}
