/** Ctrl-C: the first one stops everything in order, the second one ends at once. */

/** npm and tsx pass a signal on that the terminal has sent to all of them, so one Ctrl-C may arrive more than once. */
const sameSignalMs = 500
/** What a shell expects of a program that was interrupted. */
const interrupted = 130

export interface Shutdown {
  /** What was added last is stopped first. */
  add(stop: () => unknown): void
  /** Stops what was added so far. */
  run(): Promise<void>
}

/** From now on, signals stop what is added. If another program started this one, it stops with that program, however that ends. */
export function openShutdown(): Shutdown {
  const stops: (() => unknown)[] = []
  let firstMs: number | undefined

  async function run(): Promise<void> {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop()
  }

  function signalled(): void {
    const nowMs = performance.now()
    if (firstMs !== undefined && nowMs - firstMs >= sameSignalMs) process.exit(interrupted)
    if (firstMs !== undefined) return
    firstMs = nowMs
    console.log('stopping … (Ctrl-C again ends at once)')
    run().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  }

  process.on('SIGINT', signalled)
  process.on('SIGTERM', signalled)
  process.once('disconnect', signalled)
  return { add: stop => void stops.push(stop), run }
}
