/** Why it ended as it did: one sentence, from what ledger and tables show. */
import type { Evidence } from 'latchkey'
import type { Facts } from './facts.ts'

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
      const { by, reason } = audit.at(-1) ?? { by: 'nobody', reason: 'none' }
      return `${by} settled it as ${verdict}: ${reason}`
    }
    const found = { webhook: 'told by a signed webhook', ledger: 'seen by comparing the ledgers' }
    const how = source === 'webhook' || source === 'ledger' ? found[source] : `found out by ${source}`
    return verdict === 'never-happened'
      ? `${how} after the quarantine that it never happened, and tried again`
      : `${how} that it ${verdict}`
  }
}

function meanwhilePart({ answers }: Facts): string | undefined {
  const turnedAway = answers.some(({ text }) => problemOf(text) === 'in-progress')
  return turnedAway ? 'who asked while another ran was told so' : undefined
}

function askedPart({ asked }: Facts): string {
  const keys = new Set(asked.map(({ key }) => key)).size
  if (asked.length <= 1) return `the provider was asked ${times(asked.length)}`
  const same = asked.every(({ dedup }) => dedup) ? 'which it recognises' : 'which it does not recognise'
  return `the provider was asked ${times(asked.length)}, with ${keys === 1 ? `one key, ${same}` : `${keys} keys`}`
}

function ownersPart({ row }: Facts): string | undefined {
  return row === undefined || row.attempts <= 1
    ? undefined
    : `run ${row.attempts} went on where the one before had ended`
}

function replayPart({ answers }: Facts): string | undefined {
  const replays = answers.filter(({ replayed }) => replayed).length
  return replays === 0 ? undefined : `the stored answer was given ${times(replays)}`
}

function times(count: number): string {
  return ['never', 'once', 'twice'][count] ?? `${count} times`
}

/** Of a problem document, its code; of anything else, its text. */
export function problemOf(text: string): string {
  return /"urn:latchkey:problem:([a-z-]+)"/.exec(text)?.[1] ?? text
}
