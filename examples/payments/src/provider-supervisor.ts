/** Restarts the payment provider when it dies, at the same address. */
import type { WebhookTarget } from './charge.ts'
import { type Provider, startProvider } from './provider-process.ts'
import { supervise } from './supervise.ts'

/** Long enough to see how the shop behaves without its provider. */
const restartAfterMs = 3_000

export async function superviseProvider(ledgerPath: string, log: (line: string) => void): Promise<Provider> {
  let webhook: WebhookTarget | null = null
  const { current, stop } = await supervise<Provider>({
    name: 'provider',
    restartAfterMs,
    log,
    async start(last) {
      const provider = await startProvider(ledgerPath, last)
      if (last !== undefined) await provider.setWebhook(webhook)
      return provider
    },
  })
  return {
    get pid() {
      return current().pid
    },
    get url() {
      return current().url
    },
    get controlUrl() {
      return current().controlUrl
    },
    get exited() {
      return current().exited
    },
    charge: (...asked) => current().charge(...asked),
    charges: () => current().charges(),
    find: (...asked) => current().find(...asked),
    setFault: fault => current().setFault(fault),
    setIdempotency: on => current().setIdempotency(on),
    setBooks: open => current().setBooks(open),
    state: () => current().state(),
    ledger: () => current().ledger(),
    asked: () => current().asked(),
    setWebhook(target) {
      webhook = target
      return current().setWebhook(target)
    },
    stop,
  }
}
