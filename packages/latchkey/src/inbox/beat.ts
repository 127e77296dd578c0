/** Renews the broker's lease of a delivery while its handler runs. */
import type { Clock } from '../ports/clock.ts'
import type { Telemetry } from '../ports/telemetry.ts'

export type OnBeat = () => unknown

/** What it throws or rejects with is reported: a lease of the broker that runs out costs a delivery that finds the row at work. */
export function harmlessBeat(telemetry: Telemetry, operation: string, onBeat: OnBeat): () => void {
  const failed = (error: unknown) =>
    telemetry.report('onBeat failed, so the message may be delivered again', { operation, error })
  return () => {
    try {
      Promise.resolve(onBeat()).catch(failed)
    } catch (error) {
      failed(error)
    }
  }
}

/** For work without a lease that is renewed. Returns what ends it. */
export function beatEvery(clock: Pick<Clock, 'after'>, everyMs: number, beat: () => void): () => void {
  let cancel = clock.after(everyMs, fire)
  function fire(): void {
    cancel = clock.after(everyMs, fire)
    beat()
  }
  return () => cancel()
}
