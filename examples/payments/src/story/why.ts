/** Why a scene ended as it did: one sentence, derived from the ledger and the tables. */
import type { Evidence } from 'latchkey'
import type { Facts } from './facts.ts'

const sources = {
  webhook: 'a signed webhook',
  'look-up': 'a look-up',
  ledger: 'the ledger comparison',
  'late-owner': 'the late answer to the first call',
}

export function whyOf(facts: Facts): string {
  const parts = [refusedPart(facts), ...facts.evidence.filter(({ applied }) => applied).map(evidencePart(facts))]
  if (facts.wish.rightful) parts.push(meanwhilePart(facts), askedPart(facts), ownersPart(facts), replayPart(facts))
  return parts.filter(part => part !== undefined).join('; ')
}

function refusedPart({ wish, answers }: Facts): string | undefined {
  if (wish.rightful) return undefined
  const codes = [...new Set(answers.map(({ text }) => problemOf(text)))].join(', ')
  return `refused as ${codes}: the key belongs to another request, and nothing ran`
}

function evidencePart({ audit }: Facts): (evidence: Evidence) => string {
  return ({ source, verdict }) => {
    if (source === 'operator') {
      const { by, reason } = audit.at(-1) ?? { by: 'an unknown operator', reason: 'no reason recorded' }
      return `${by} settled it as ${verdict}: ${reason}`
    }
    return verdict === 'never-happened'
      ? `${sources[source]} showed, after the quarantine, that it never happened, and it was retried`
      : `${sources[source]} showed that it ${verdict === 'happened' ? 'happened' : `was ${verdict}`}`
  }
}

function meanwhilePart({ answers }: Facts): string | undefined {
  const turnedAway = answers.some(({ text }) => problemOf(text) === 'in-progress')
  return turnedAway ? 'a request while it ran got 409 in-progress' : undefined
}

function askedPart({ asked }: Facts): string {
  const keys = new Set(asked.map(({ key }) => key)).size
  if (asked.length <= 1) return `the provider was called ${times(asked.length)}`
  const same = asked.every(({ dedup }) => dedup) ? 'which it recognises' : 'which it does not recognise'
  return `the provider was called ${times(asked.length)}, with ${keys === 1 ? `one key, ${same}` : `${keys} keys`}`
}

function ownersPart({ row }: Facts): string | undefined {
  return row === undefined || row.attempts <= 1
    ? undefined
    : `attempt ${row.attempts} resumed where the previous one had ended`
}

function replayPart({ answers }: Facts): string | undefined {
  const replays = answers.filter(({ replayed }) => replayed).length
  return replays === 0 ? undefined : `the stored answer was replayed ${times(replays)}`
}

function times(count: number): string {
  return ['never', 'once', 'twice'][count] ?? `${count} times`
}

/** The code of a problem document; the text of anything else. */
export function problemOf(text: string): string {
  return /"urn:latchkey:problem:([a-z-]+)"/.exec(text)?.[1] ?? text
}
