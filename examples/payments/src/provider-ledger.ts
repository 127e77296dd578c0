/** The provider's ledger: a file to which each charge and refusal is appended and fsynced before it is answered. */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import type { Charge } from './charge.ts'

/** A charge, or a key that was declined. */
type Line = Charge | { readonly declined: string }

export interface Ledger {
  all(): readonly Charge[]
  /** The first charge under a downstream key. */
  find(key: string): Charge | undefined
  add(asked: Omit<Charge, 'id'>): Charge
  /** Binds the key: all its requests are declined from now on, including earlier ones that still wait. */
  decline(key: string): void
  isDeclined(key: string): boolean
  close(): void
}

export function openLedger(path: string): Ledger {
  const lines = readLedger(path)
  const charges = lines.filter(line => 'id' in line)
  const declined = new Set(lines.flatMap(line => ('declined' in line ? [line.declined] : [])))
  const byKey = new Map<string, Charge>()
  const remember = (charge: Charge) => {
    if (!byKey.has(charge.key)) byKey.set(charge.key, charge)
  }
  for (const charge of charges) remember(charge)
  const file = openSync(path, 'a')
  const append = (line: Line) => {
    appendFileSync(file, `${JSON.stringify(line)}\n`)
    fsyncSync(file)
  }
  return {
    all: () => charges,
    find: key => byKey.get(key),
    add(asked) {
      const charge = { id: `ch_${charges.length + 1}`, ...asked }
      append(charge)
      charges.push(charge)
      remember(charge)
      return charge
    },
    decline(key) {
      append({ declined: key })
      declined.add(key)
    },
    isDeclined: key => declined.has(key),
    close: () => closeSync(file),
  }
}

function readLedger(path: string): Line[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter(line => line !== '').map((line): Line => JSON.parse(line))
}
