import type { Faculty, Store } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { describe, expect, it } from 'vitest'
import { runStoreCases, storeCases } from './store.ts'
import type { StoreSelection } from './store-selection.ts'

const everything: readonly Faculty[] = memoryStore().traits.faculties
const without = (...lacking: readonly Faculty[]) => everything.filter(faculty => !lacking.includes(faculty))
const selfCheck = 'runs the cases of the faculties that it claims, and of no other'

/** The cases that a suite registers, by name, and what it prints. */
function suite(selection: StoreSelection, traits: Partial<Store['traits']> = {}) {
  const printed: string[] = []
  const cases = new Map<string, () => Promise<void>>()
  const store = memoryStore()
  const claiming: Store = { ...store, traits: { ...store.traits, ...traits } }
  const open = async () => ({ open: async () => claiming, advance: async () => {}, close: async () => {} })
  runStoreCases(open, (name, run) => void cases.set(name, run), { print: line => printed.push(line), ...selection })
  return { cases, printed, check: () => cases.get(selfCheck)?.() ?? Promise.reject(new Error('no such case')) }
}

describe('the store cases', () => {
  it('have different names', () => {
    const names = storeCases.map(({ name }) => name)
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  it('all run for a store with every faculty, and nothing is printed', () => {
    const { cases, printed } = suite({ elsewhere: ['outbox'] })
    expect(cases.size).toBe(storeCases.length + 1)
    expect(printed).toEqual([])
  })

  it('are left out where the store lacks what they need, and the suite prints which, and why', () => {
    const { cases, printed } = suite({ faculties: without('phases', 'ledgers') })
    const needing = (faculty: Faculty) =>
      storeCases.filter(({ needs }) => needs?.includes(faculty)).map(each => each.name)
    const [phases, ledgers] = [needing('phases'), needing('ledgers')]
    expect([phases.length, ledgers.length].every(count => count > 0)).toBe(true)
    expect(printed).toEqual([
      `@latchkey/conformance leaves out ${phases.length} cases, because the store is without phases:`,
      ...phases.map(name => `  ${name}`),
      `@latchkey/conformance leaves out ${ledgers.length} cases, because the store is without ledgers:`,
      ...ledgers.map(name => `  ${name}`),
    ])
    for (const name of [...phases, ...ledgers]) expect(cases.has(name), name).toBe(false)
    expect(cases.size).toBe(storeCases.length - phases.length - ledgers.length + 1)
  })

  it('say of every faculty which cases it needs, except of the outbox, which has a suite of its own', () => {
    const needed = new Set(storeCases.flatMap(({ needs = [] }) => needs))
    expect(everything.filter(faculty => !needed.has(faculty))).toEqual(['outbox'])
  })
})

describe('the case about the selection', () => {
  it('passes for a store that claims what its cases were selected by', async () => {
    await suite({ elsewhere: ['outbox'] }).check()
    const fewer = without('outbox', 'values')
    await suite({ faculties: fewer }, { faculties: fewer }).check()
  })

  it('fails for a store that claims a faculty whose cases it does not run', async () => {
    const { check } = suite({ faculties: without('phases'), elsewhere: ['outbox'] })
    await expect(check()).rejects.toThrow('the memory store claims phases, and no case of that runs')
  })

  it('fails for a store with an outbox until somebody says that its suite runs', async () => {
    await expect(suite({}).check()).rejects.toThrow('claims outbox, and no case of that runs')
  })

  it('fails for a store that does not claim what its cases test', async () => {
    const { check } = suite({ elsewhere: ['outbox'] }, { faculties: without('values') })
    await expect(check()).rejects.toThrow('does not claim values in its traits')
  })
})
