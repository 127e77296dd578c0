/** One phased payment on a real store, with a provider that remembers its calls, and a switch for every way it can fail. */
import { createLatchkey, json, type EffectOptions, type Latchkey, type PhasedOperation } from 'latchkey'
import { openPlace, type Place } from '../processes/database.ts'

export interface Pay {
  readonly label: string
}

export interface Provider {
  /** The downstream keys it was called with, in order. */
  readonly calls: string[]
  /** What the next calls do; then they answer. */
  readonly faults: (() => Promise<never> | Promise<unknown>)[]
}

export interface Stage {
  readonly place: Place
  readonly latchkey: Latchkey<unknown, unknown>
  readonly pay: PhasedOperation<Pay>
  readonly provider: Provider
  /** How often each phase's function ran, committed or not. */
  readonly phases: Record<string, number>
  /** Thrown once by the phase of this name, after its writes. */
  breakPhase(name: string, error: Error): void
  close(): Promise<void>
}

export interface StageOptions {
  readonly effect?: EffectOptions
  readonly leaseMs?: number
  readonly version?: number
}

export const withDedup: EffectOptions = { dedup: { windowMs: 3_600_000 }, timeoutMs: 1_000 }

export const withoutDedup: EffectOptions = { timeoutMs: 1_000 }

export async function openStage(
  name: string,
  { effect = withDedup, leaseMs = 3_000, version = 1 }: StageOptions = {},
): Promise<Stage> {
  const place = await openPlace(name)
  const provider: Provider = { calls: [], faults: [] }
  const phases: Record<string, number> = {}
  const broken = new Map<string, Error>()
  const latchkey = createLatchkey({ store: place.store, scope: () => 'acme' })

  async function write(phase: string, tx: unknown, label: string): Promise<void> {
    phases[phase] = (phases[phase] ?? 0) + 1
    await place.insert(tx, `${label}/${phase}`)
    const error = broken.get(phase)
    broken.delete(phase)
    if (error !== undefined) throw error
  }

  async function charge(key: string): Promise<{ charge: string }> {
    provider.calls.push(key)
    await provider.faults.shift()?.()
    return { charge: `ch-${key}` }
  }

  const pay = latchkey.phased<Pay>('payments.create', { version, leaseMs }, async (x, { label }) => {
    await x.phase('record', tx => write('record', tx, label))
    const { charge: id } = await x.effect('charge', effect, ({ key }) => charge(key))
    await x.phase('receipt', async tx => {
      await write('receipt', tx, label)
      await x.outbox.append(tx, { topic: 'receipts', aggregate: label, payload: { id } })
    })
    return json(201, { label, charge: id })
  })
  return {
    place,
    latchkey,
    pay,
    provider,
    phases,
    breakPhase: (phase, error) => void broken.set(phase, error),
    async close() {
      await latchkey.close()
      await place.close()
    },
  }
}

export function ask(stage: Stage, label: string): ReturnType<PhasedOperation<Pay>['run']> {
  return stage.pay.run({ scope: 'acme', key: label, input: { label } })
}

export function rowOf(label: string): { scope: string; operation: string; key: string } {
  return { scope: 'acme', operation: 'payments.create', key: label }
}
