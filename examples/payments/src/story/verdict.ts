/** What is wrong with a scene's end. Nothing: exactly what was wanted has happened, once. */
import type { Answer } from './client.ts'
import type { Facts } from './facts.ts'

export function complaintsAbout(facts: Facts): string[] {
  const { wish, intents, charges, row, answers } = facts
  const name = `${wish.path} of ${wish.amount} for ${wish.account}`
  const wanted = wish.rightful ? 1 : 0
  const complaints: string[] = []
  if (charges.length !== wanted) complaints.push(`${name}: ${charges.length} charges instead of ${wanted}`)
  if (intents !== charges.length) complaints.push(`${name}: intents ${intents}, charges ${charges.length}`)
  if (!wish.rightful) return complaints
  if (row?.state !== 'completed') complaints.push(`${name}: its row is ${row?.state ?? 'missing'}, not completed`)
  const [charge] = charges
  for (const { charge: known } of facts.payments) {
    if (known !== charge?.id) complaints.push(`${name}: the shop knows of ${known}, and the ledger of ${charge?.id}`)
  }
  return [...complaints, ...complaintsAboutAnswers(name, answers)]
}

function complaintsAboutAnswers(name: string, answers: readonly Answer[]): string[] {
  const bodies = new Set(answers.filter(({ status }) => status === 201).map(({ text }) => text))
  if (bodies.size === 0) return [`${name}: nobody got an answer`]
  return bodies.size === 1 ? [] : [`${name}: its clients got ${bodies.size} different answers`]
}
