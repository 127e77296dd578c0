/** An application that puts a marker wherever an application can put something, and reads all of it again. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { createLatchkey, json, outcomeUnknown } from 'latchkey'
import type { EncryptionOptions, LaneLease, Latchkey, Outbox, Store } from 'latchkey'
import { engine } from '../../src/engine/internal.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import { present } from '../present.ts'

export const marker = 'Mk7Qz-Hildegard-4111111111111111'
/** Over what is stored with its key, in every store. */
const large = `${marker} `.repeat(100)
const hourMs = 3_600_000

export interface Shop {
  readonly latchkey: Latchkey<unknown, unknown>
  /** The one that the application talks to. */
  readonly store: Store
  /** Runs every operation. What ran before is replayed. Returns how many handlers ran. */
  runAll(): Promise<number>
  /** Puts evidence beside the unknown row. */
  tell(): Promise<string>
  readonly unknown: { readonly scope: string; readonly operation: string; readonly key: string }
}

export function openShop(store: Store, encryption?: EncryptionOptions, scope = 'acme'): Shop {
  const latchkey = createLatchkey({
    store,
    scope: () => scope,
    telemetry: silentTelemetry,
    maintenance: false,
    ...(encryption && { encryption }),
  })
  let runs = 0
  const counted = <T>(value: T): T => {
    runs += 1
    return value
  }
  const describe = () => `for ${marker}`
  const pay = latchkey.guarded('payments.create', { onFailure: 'hold', describe })
  const note = latchkey.atomic('notes.create', { describe })
  const ship = latchkey.phased<{ to: string }>('parcels.send', { version: 1 }, async (x, { to }) => {
    const packed = await x.phase('pack', async tx => {
      await x.outbox.append(tx, {
        topic: 'parcels',
        aggregate: `order of ${marker}`,
        payload: { to },
        headers: { 'x-to': to },
      })
      return counted({ packed: to })
    })
    const label = await x.effect('label', { timeoutMs: 10_000 }, async () => ({ label: `for ${to}` }))
    return json(201, { ...packed, ...label }, [['x-parcel', to]])
  })
  const later = latchkey.deferred<{ for: string }>('exports.create', { deadlineMs: hourMs }, async (_x, input) =>
    json(200, input),
  )
  const request = (key: string) => ({ scope, key, input: { amount: 1 } })
  return {
    latchkey,
    store: latchkey[engine].store,
    unknown: { scope, operation: 'payments.create', key: 'unknown' },
    async runAll() {
      runs = 0
      expect(await pay.run(request('small'), async () => counted({ to: marker }))).toEqual({ to: marker })
      expect(await pay.run(request('large'), async () => counted({ to: large }))).toEqual({ to: large })
      const inDoubt = pay.run(request('unknown'), async () => {
        throw counted(outcomeUnknown(new Error('no answer')))
      })
      await expect(inDoubt).rejects.toMatchObject({ code: 'outcome-unknown' })
      expect(await note.run(request('note'), async () => counted({ to: marker }))).toEqual({ to: marker })
      const parcel = await ship.run({ scope, key: 'parcel', input: { to: marker } })
      expect(parcel).toMatchObject({ value: { packed: marker, label: `for ${marker}` } })
      await later.run({ scope, key: 'export', input: { for: marker } })
      return runs
    },
    async tell() {
      const subject = {
        id: latchkey.identify({ scope, operation: 'payments.create', key: 'unknown' }),
        effect: undefined,
      }
      const outcome = { status: 201, headers: [['x-to', marker]] as const, body: Buffer.from(large), version: 1 }
      const kept = await present(latchkey[engine].store.reconciliation).keep(subject, {
        source: 'webhook',
        ref: `evt ${marker}`,
        verdict: { kind: 'happened', outcome },
        delivery: { signedAtMs: 1_000 },
      })
      expect(kept.kind).toBe('kept')
      return 'evidenceId' in kept ? kept.evidenceId : ''
    },
  }
}

/** On PostgreSQL another transaction of the server may hold a message back for a moment. */
async function leaseOf(outbox: Outbox<unknown>): Promise<LaneLease> {
  for (let tries = 0; tries < 400; tries += 1) {
    const lease = await outbox.leaseLane({ leaseId: crypto.randomUUID(), leaseMs: hourMs })
    if (lease !== undefined) return lease
    await pause(50)
  }
  throw new Error('there is no message')
}

/** Takes the one message of the shop, as a relay does. */
export async function deliverOne({ store }: Shop): Promise<void> {
  const { outbox } = store
  if (outbox === undefined) throw new Error('the store has no outbox')
  const lease = await leaseOf(outbox)
  const batch = await outbox.next(lease, { limit: 10 })
  if (batch === 'lease-lost') throw new Error(batch)
  const [message] = batch.messages
  expect(batch.messages).toHaveLength(1)
  expect(message).toMatchObject({ topic: 'parcels', aggregate: `order of ${marker}`, headers: { 'x-to': marker } })
  expect(Buffer.from(message?.payload ?? []).toString()).toBe(JSON.stringify({ to: marker }))
  const position = message?.position ?? ''
  const ends = [{ kind: 'delivered', position, downstreamId: `downstream ${marker}` }] as const
  expect(await outbox.settle(lease, { batch, ends, then: { kind: 'release' } })).toBe('written')
  expect(await outbox.downstreamId(position)).toBe(`downstream ${marker}`)
}

/** Whether the marker stands in bytes of a database: as it is, or as hexadecimal digits, as a dump writes bytes. */
export function finds(dump: string): number {
  const hex = Buffer.from(marker).toString('hex')
  return dump.split(marker).length - 1 + dump.split(hex).length - 1
}
