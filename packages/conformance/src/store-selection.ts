/** Which cases a store runs: those that need no more than the faculties it claims. */
import assert from 'node:assert/strict'
import type { Faculty, StoreTraits } from 'latchkey'
import { everyFaculty } from './store/traits.ts'

export interface StoreSelection {
  /** What the store has beside its core, as its traits say. Default: everything. Cases that need more are left out. */
  readonly faculties?: readonly Faculty[]
  /** Claimed faculties whose cases another call runs over this store: `outbox`, by `runOutboxCases`. Default: none. */
  readonly elsewhere?: readonly Faculty[]
  /** Is given each line about cases that are left out. Default: `console.log`. */
  readonly print?: (line: string) => void
}

interface Selectable {
  readonly name: string
  readonly needs?: readonly Faculty[]
}

export function selectCases<Case extends Selectable>(
  cases: readonly Case[],
  { faculties = everyFaculty, print = line => console.log(line) }: StoreSelection,
): readonly Case[] {
  const selected: Case[] = []
  const leftOut = new Map<string, string[]>()
  for (const each of cases) {
    const lacking = (each.needs ?? []).filter(faculty => !faculties.includes(faculty)).join(', ')
    if (lacking === '') selected.push(each)
    else leftOut.set(lacking, [...(leftOut.get(lacking) ?? []), each.name])
  }
  for (const [lacking, names] of leftOut) {
    print(`@latchkey/conformance leaves out ${names.length} cases, because the store is without ${lacking}:`)
    for (const name of names) print(`  ${name}`)
  }
  return selected
}

/** `selected`: the cases that ran. */
export function assertSelected(
  store: { readonly name: string; readonly traits: Pick<StoreTraits, 'faculties'> },
  selected: readonly Selectable[],
  { faculties = everyFaculty, elsewhere = [] }: StoreSelection,
): void {
  const claimed = store.traits.faculties
  const run = (faculty: Faculty) => selected.some(({ needs }) => needs?.includes(faculty) === true)
  const missed = claimed.filter(faculty => !run(faculty) && !elsewhere.includes(faculty))
  assert.deepEqual(
    missed,
    [],
    `the ${store.name} store claims ${missed.join(', ')}, and no case of that runs. Name it in \`faculties\`; the cases of an outbox are in runOutboxCases: run them, and name it in \`elsewhere\``,
  )
  const unclaimed = faculties.filter(faculty => !claimed.includes(faculty))
  assert.deepEqual(
    unclaimed,
    [],
    `the ${store.name} store does not claim ${unclaimed.join(', ')} in its traits: leave it out of \`faculties\``,
  )
}
