/** A shop on SQLite with real rows: what its operators see in the console. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'libsql'
import { createLatchkey, json, type Latchkey, silentTelemetry } from 'latchkey'
import { createReconciler } from 'latchkey/reconcile'
import { functionTarget } from 'latchkey/outbox'
import { type SqliteTx, sqliteStore } from 'latchkey/stores/sqlite'
import { createWorkers } from 'latchkey/workers'
import { openProvider, type Provider } from './provider.ts'

export interface PaymentGiven {
  readonly scope: string
  readonly order: string
  readonly amount: number
  readonly description?: string
}

export type Shop = Awaited<ReturnType<typeof openShop>>

/** Over soon: operators wait for its end, and so do the tests. */
export const quarantineMs = 2_000
/** Turns soon enough for a test that waits for them. */
const pace = { everyMs: 200 }

export async function openShop(directory: string) {
  const path = join(directory, 'shop.db')
  const store = sqliteStore({ path, open: file => new Database(file) })
  await store.migrate()
  const provider = openProvider()
  const latchkey = createLatchkey({ store, telemetry: silentTelemetry, scope: () => 'none' })
  const payments = declarePayments(latchkey, provider)
  const transfers = latchkey.guarded('transfers.create', { onFailure: 'hold', describe: described })
  const refusing = { isOn: false }
  const done = new Set<number>()
  const onReport = (at: number) => void done.add(at)
  const workers = workersOf(latchkey, { payments, provider, refusing })
  return {
    store,
    latchkey,
    provider,
    workers,
    refusing,
    /** Resolves whatever becomes of it. */
    async pay({ scope, order, amount, description }: PaymentGiven): Promise<void> {
      const input = { order, amount, description }
      await payments.run({ scope, key: `key-${order}`, input }).catch(() => {})
    },
    async transfer(scope: string, key: string): Promise<void> {
      const input = { order: key, amount: 7_700 }
      await transfers.run({ scope, key, input }, () => Promise.reject(new Error('the line went dead'))).catch(() => {})
    },
    /** The id of a payment that the provider has charged without an answer. */
    async unknownPayment(order: string, given: Partial<PaymentGiven> = {}): Promise<string> {
      provider.mode = 'charges, no answer'
      await this.pay({ scope: 'acme', order, amount: 5_000, ...given })
      provider.mode = 'answers'
      const [found] = await latchkey.find({ reference: order })
      if (found === undefined) throw new Error(`no row has the reference ${order}`)
      return found.id
    },
    /** Reports of version 1, met by a process that has only version 2. */
    async deployTooEarly(count: number): Promise<void> {
      const before = createLatchkey({ store, telemetry: silentTelemetry, scope: () => 'none', maintenance: false })
      const reports = declareReports(before, 1, onReport)
      declareReports(latchkey, 2, onReport)
      for (let at = 0; at < count; at += 1)
        await reports.run({ scope: 'acme', key: `report-${at}`, input: { at } }).catch(() => {})
      await before.close()
    },
    /** Rows are resumed by the version that they were started with. */
    bringBackOldVersion: () => void declareReports(latchkey, 1, onReport),
    reportsDone: () => done.size,
    async unknown(): Promise<number> {
      return (await latchkey.list({ state: 'unknown', limit: 1_000 })).records.length
    },
    passQuarantine: () => delay(quarantineMs + 100),
    /** As if the workers had been silent for so much longer. */
    ageBeats(ms: number): void {
      const file = new Database(path)
      file
        .prepare('update latchkey_workers set seen_at_ms = seen_at_ms - ?, last_turn_at_ms = last_turn_at_ms - ?')
        .run(ms, ms)
      file.close()
    },
    async close(): Promise<void> {
      await workers.stop()
      await latchkey.close()
      await store.close()
    },
  }
}

interface WorkersParts {
  readonly payments: ReturnType<typeof declarePayments>
  readonly provider: Provider
  /** Whether the consumer of receipts refuses them. */
  readonly refusing: { readonly isOn: boolean }
}

function workersOf(latchkey: Latchkey<SqliteTx, unknown>, { payments, provider, refusing }: WorkersParts) {
  const receipts = functionTarget(() => {
    if (refusing.isOn) throw new Error('400 unknown template')
  })
  const reconcile = createReconciler(latchkey)
  reconcile.register(payments, {
    quarantineMs,
    // Long: an operator asks sooner. After the last one the row would be parked.
    backoffMs: Array.from({ length: 20 }, () => 600_000),
    async lookup({ key }) {
      const charge = provider.find(key)
      return charge === undefined ? { kind: 'still-unknown' } : { kind: 'happened', value: charge }
    },
  })
  return createWorkers(latchkey, {
    sweeper: pace,
    resumer: pace,
    reconciler: { use: reconcile, ...pace },
    relay: { targets: { receipts }, ...pace, attemptsMax: 1 },
  })
}

function declarePayments(latchkey: Latchkey<SqliteTx, unknown>, provider: Provider) {
  return latchkey.phased<{ order: string; amount: number; description?: string | undefined }>(
    'payments.create',
    { version: 1, describe: described },
    async (x, { order }) => {
      await x.reference(order)
      await x.phase('record', async () => 1)
      const charge = await x.effect('charge', { timeoutMs: 20_000 }, ({ key }) => provider.charge(key, order))
      await x.phase('receipt', async tx =>
        x.outbox.append(tx, { topic: 'receipts', aggregate: order, payload: charge }),
      )
      return json(201, { charge: charge.id, order })
    },
  )
}

function declareReports(latchkey: Latchkey<SqliteTx, unknown>, version: number, onReport: (at: number) => void) {
  const described = ({ at }: { at: number }) => `report ${at}`
  return latchkey.deferred<{ at: number }>(
    'reports.create',
    { version, deadlineMs: 3_600_000, describe: input => described(input as { at: number }) },
    async (x, { at }) => {
      await x.phase('write', async () => onReport(at))
      return json(201, { at })
    },
  )
}

function described(input: unknown): string {
  const { order, amount, description } = input as { order: string; amount: number; description?: string }
  return description ?? `€ ${(amount / 100).toFixed(2)} ${order}`
}
