/** Few identities, so that commands meet on them. */
import { createHash } from 'node:crypto'
import { uuidText } from '../../src/ports/clock.ts'

export const keys = ['key a', 'key b', 'key c'] as const

export function idOf(name: string): string {
  return uuidText(createHash('sha256').update(name).digest())
}

export function text(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}

export function downstreamKeyOf({ key, position, epoch }: { key: string; position: number; epoch: number }): string {
  return idOf(`downstream ${key} ${position} ${epoch}`)
}
