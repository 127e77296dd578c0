/** A payment provider that loses its answers: what it did, and what it says when it is asked. */
import { outcomeUnknown } from 'latchkey'

export interface Charge {
  readonly id: string
  readonly status: string
}

export interface Provider {
  /** How the next calls end. */
  mode: 'answers' | 'charges, no answer' | 'no charge, no answer'
  /** Its search knows so many of its charges; the others are not in the index yet. */
  indexed: number
  charge(key: string, order: string): Promise<Charge>
  find(key: string): Charge | undefined
  /** What it would export about these orders: `id,idempotency_key,status`. */
  exportOf(orders: readonly string[]): string
  readonly charges: ReadonlyMap<string, Charge>
}

export function openProvider(): Provider {
  const charges = new Map<string, Charge>()
  const asked = new Map<string, string>()
  const provider: Provider = {
    mode: 'answers',
    indexed: Infinity,
    charges,
    async charge(key, order) {
      asked.set(order, key)
      if (provider.mode !== 'no charge, no answer')
        charges.set(key, { id: `ch_${String(charges.size + 1).padStart(4, '0')}`, status: 'succeeded' })
      const made = charges.get(key)
      if (provider.mode === 'answers' && made !== undefined) return made
      throw outcomeUnknown(new Error('read timeout after 20 s'))
    },
    find: key => ([...charges.keys()].indexOf(key) < provider.indexed ? charges.get(key) : undefined),
    exportOf(orders) {
      const lines = orders.map(order => {
        const key = asked.get(order) ?? ''
        const { id = '', status = 'not_found' } = charges.get(key) ?? {}
        return `${id},${key},${status}`
      })
      return ['id,idempotency_key,status', ...lines, ''].join('\n')
    },
  }
  return provider
}
