/** What is wrong with the end of a scene. Empty: exactly what was requested happened, once. */
import type { Answer } from './client.ts'
import type { Facts } from './facts.ts'

export function complaintsAbout(facts: Facts): string[] {
  const { wish, intents, charges, row, answers } = facts
  const name = `${wish.path} of ${wish.amount} for ${wish.account}`
  const wanted = wish.rightful ? 1 : 0
  const complaints: string[] = []
  if (charges.length !== wanted) complaints.push(`${name}: ${charges.length} charges instead of ${wanted}`)
  if (intents !== charges.length) complaints.push(`${name}: ${intents} intents but ${charges.length} charges`)
  if (!wish.rightful) return complaints
  if (row?.state !== 'completed') complaints.push(`${name}: its row is ${row?.state ?? 'missing'}, not completed`)
  const [charge] = charges
  for (const { charge: known } of facts.payments) {
    if (known !== charge?.id) complaints.push(`${name}: the shop has charge ${known}, the ledger has ${charge?.id}`)
  }
  return [...complaints, ...complaintsAboutAnswers(name, answers)]
}

function complaintsAboutAnswers(name: string, answers: readonly Answer[]): string[] {
  const bodies = new Set(answers.filter(({ status }) => status === 201).map(({ text }) => text))
  if (bodies.size === 0) return [`${name}: no client got an answer`]
  return bodies.size === 1 ? [] : [`${name}: its clients got ${bodies.size} different answers`]
}
