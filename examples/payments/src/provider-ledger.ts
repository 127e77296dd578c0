/** The provider's memory: a file to which each charge is appended and fsynced before anybody hears of it. */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import type { Charge } from './charge.ts'

export interface Ledger {
  all(): readonly Charge[]
  /** The first charge under a downstream key. */
  find(key: string): Charge | undefined
  add(asked: Omit<Charge, 'id'>): Charge
  close(): void
}

export function openLedger(path: string): Ledger {
  const charges = readLedger(path)
  const byKey = new Map<string, Charge>()
  const remember = (charge: Charge) => {
    if (!byKey.has(charge.key)) byKey.set(charge.key, charge)
  }
  for (const charge of charges) remember(charge)
  const file = openSync(path, 'a')
  return {
    all: () => charges,
    find: key => byKey.get(key),
    add(asked) {
      const charge = { id: `ch_${charges.length + 1}`, ...asked }
      appendFileSync(file, `${JSON.stringify(charge)}\n`)
      fsyncSync(file)
      charges.push(charge)
      remember(charge)
      return charge
    },
    close: () => closeSync(file),
  }
}

function readLedger(path: string): Charge[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter(line => line !== '').map((line): Charge => JSON.parse(line))
}
