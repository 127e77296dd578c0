/** Restarts the payment provider when it dies, at the same address, as an init system would. */
import { setTimeout as delay } from 'node:timers/promises'
import type { WebhookTarget } from './charge.ts'
import { type Provider, startProvider } from './provider-process.ts'

/** Long enough to see how the shop behaves without its provider. */
const restartAfterMs = 3_000

export async function superviseProvider(ledgerPath: string, log: (line: string) => void): Promise<Provider> {
  let current = await startProvider(ledgerPath)
  let webhook: WebhookTarget | null = null
  let stopping = false

  async function watch(): Promise<void> {
    while (!stopping) {
      await current.exited
      if (stopping) return
      log('the provider died; restarting it in three seconds')
      await restart().catch((error: unknown) => log(`the provider could not be restarted: ${String(error)}`))
    }
  }

  async function restart(): Promise<void> {
    await delay(restartAfterMs)
    if (stopping) return
    current = await startProvider(ledgerPath, current)
    await current.setWebhook(webhook)
    log(`the provider is running again, with pid ${current.pid}`)
  }
  void watch()

  return {
    get pid() {
      return current.pid
    },
    get url() {
      return current.url
    },
    get controlUrl() {
      return current.controlUrl
    },
    get exited() {
      return current.exited
    },
    charge: (...asked) => current.charge(...asked),
    charges: () => current.charges(),
    find: (...asked) => current.find(...asked),
    setFault: fault => current.setFault(fault),
    setIdempotency: on => current.setIdempotency(on),
    setBooks: open => current.setBooks(open),
    state: () => current.state(),
    ledger: () => current.ledger(),
    asked: () => current.asked(),
    setWebhook(target) {
      webhook = target
      return current.setWebhook(target)
    },
    stop() {
      stopping = true
      return current.stop()
    },
  }
}
