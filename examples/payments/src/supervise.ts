/** Restarts a process when it dies, as an init system would. */
import { setTimeout as delay } from 'node:timers/promises'

export interface Supervised {
  readonly pid: number | undefined
  /** Settles when its process has exited, for any reason. */
  readonly exited: Promise<unknown>
  stop(): Promise<void>
}

export interface Supervision<Process extends Supervised> {
  /** For the log. */
  readonly name: string
  readonly restartAfterMs: number
  /** `last`: the process before it, whose address it takes over. */
  start(last?: Process): Promise<Process>
  log(line: string): void
}

export async function supervise<Process extends Supervised>({
  name,
  restartAfterMs,
  start,
  log,
}: Supervision<Process>): Promise<{ current(): Process; stop(): Promise<void> }> {
  let current = await start()
  let stopping = false

  async function watch(): Promise<void> {
    while (!stopping) {
      await current.exited
      if (stopping) return
      log(`the ${name} died; restarting it in ${restartAfterMs / 1_000} s`)
      await restart().catch((error: unknown) => log(`the ${name} could not be restarted: ${String(error)}`))
    }
  }

  async function restart(): Promise<void> {
    await delay(restartAfterMs)
    if (stopping) return
    current = await start(current)
    log(`the ${name} is running again, with pid ${current.pid}`)
  }
  void watch()

  return {
    current: () => current,
    stop() {
      stopping = true
      return current.stop()
    },
  }
}
