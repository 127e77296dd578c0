/** What every server does for a request: the same parsed body in, the same receipt out. */
import { setTimeout as delay } from 'node:timers/promises'

export interface Order {
  readonly sku: string
}

export interface Receipt {
  readonly id: number
  readonly sku: string
  readonly state: string
  readonly note: string
}

export type Insert = (sku: string) => Promise<number>

export interface Work {
  /** Runs the handler, inside a transaction where an insert is given. */
  handle(order: Order, insert?: Insert): Promise<Receipt>
  /** How often the handler ran. */
  runs(): number
  /** While it is off, the handler answers at once. */
  switch(state: 'on' | 'off'): void
}

const note = 'y'.repeat(100)

export function orderWork(workMs: number): Work {
  let runs = 0
  let delayMs = workMs
  return {
    async handle({ sku }, insert) {
      runs += 1
      if (delayMs > 0) await delay(delayMs)
      const id = insert === undefined ? runs : await insert(sku)
      return { id, sku, state: 'accepted', note }
    },
    runs: () => runs,
    switch: state => void (delayMs = state === 'on' ? workMs : 0),
  }
}
