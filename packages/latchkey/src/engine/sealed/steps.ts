/** The journal, with inputs and values sealed. */
import type { Phases, Steps, WorkInput } from '../../ports/steps.ts'
import type { Keyring } from './keyring.ts'
import { openJournal } from './record.ts'
import { sealText } from './seal.ts'

export function sealedSteps(steps: Steps, ring: Keyring): Steps {
  return {
    async readJournal(id) {
      const journal = await steps.readJournal(id)
      return journal && openJournal(ring, id, journal)
    },
    openIntent: (claim, intent, leaseMs) => steps.openIntent(claim, intent, leaseMs),
    async recordResult(claim, effect, leaseMs) {
      const value = await sealValue(ring, { id: claim.id, position: effect.position }, effect.value)
      return steps.recordResult(claim, { ...effect, value }, leaseMs)
    },
  }
}

export function sealedPhases<Tx>(phases: Phases<Tx>, ring: Keyring): Phases<Tx> {
  return {
    enterPhase: (tx, claim) => phases.enterPhase(tx, claim),
    async recordPhase(tx, claim, phase, leaseMs) {
      const value = await sealValue(ring, { id: claim.id, position: phase.position }, phase.value)
      return phases.recordPhase(tx, claim, { ...phase, value }, leaseMs)
    },
  }
}

/** `position`: undefined where the store finds the open effect itself. */
export async function sealValue(
  ring: Keyring,
  { id, position }: { readonly id: string; readonly position: number | undefined },
  value: string | undefined,
): Promise<string | undefined> {
  return value === undefined ? undefined : sealText(ring, { identity: id, column: 'step' }, value, position)
}

export async function sealWork<W extends WorkInput>(ring: Keyring, id: string, work: W): Promise<W> {
  return { ...work, input: await sealText(ring, { identity: id, column: 'input' }, work.input) }
}
