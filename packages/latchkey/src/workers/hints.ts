import type { Telemetry } from '../ports/telemetry.ts'
import type { WorkerName, WorkersOptions } from './options.ts'

/** Subscribes to hints. A `hint` function that throws is reported: polling does the work anyway. */
export function subscription(
  hint: WorkersOptions['hint'],
  wake: (worker?: WorkerName) => void,
  telemetry: Telemetry,
): { begin(): void; end(): void } {
  let end: (() => void) | undefined
  const guarded = (run: () => void) => {
    try {
      run()
    } catch (error) {
      telemetry.report('the workers get no hints; polling continues', { error })
    }
  }
  return {
    begin: () => guarded(() => void (end ??= hint?.(wake))),
    end() {
      guarded(() => end?.())
      end = undefined
    },
  }
}
