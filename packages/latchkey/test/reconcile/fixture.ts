/** A payment whose provider does not recognise keys, so that a lost answer is unknown; and every way to settle it. */
import { createHmac } from 'node:crypto'
import { createLatchkey, isLatchkeyError, json, type Latchkey, type PhasedOperation } from 'latchkey'
import { createReconciler, type EffectVerdict, type Reconciler, standardWebhooks } from 'latchkey/reconcile'
import { createWorkers, type Workers, type WorkersOptions } from 'latchkey/workers'
import { eventually, recordingTelemetry } from '../engine/fixture.ts'
import { openPlace, type Place } from '../processes/database.ts'

export interface Pay {
  readonly label: string
}

export interface Charge {
  readonly id: string
  readonly key: string
  readonly label: string
}

/** Its own ledger, and a switch for what happens to the next answers. */
export interface Provider {
  readonly charges: Charge[]
  /** The downstream keys of all calls, in order. */
  readonly calls: string[]
  /** `lost`: charged, and the answer never comes. `lost-before`: not even charged. Then it answers. */
  readonly faults: ('lost' | 'lost-before' | ((charge: Charge) => Promise<void>))[]
  find(key: string): Charge | undefined
}

export interface ReconcileFixture {
  readonly place: Place
  readonly telemetry: ReturnType<typeof recordingTelemetry>
  readonly latchkey: Latchkey<unknown, unknown>
  readonly pay: PhasedOperation<Pay>
  readonly provider: Provider
  readonly reconcile: Reconciler
  /** How often the phase after the charge ran. */
  receipts(): number
  /** Requests a payment whose answer is lost; returns the id of the row, which is then unknown. */
  unknownPayment(label: string, fault?: Provider['faults'][number]): Promise<string>
  stateOf(id: string): Promise<string | undefined>
  /** Started; stopped when the fixture closes. By default polling is so rare that only hints have an effect. */
  work(options?: WorkersOptions): Promise<Workers>
  close(): Promise<void>
}

export const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const rarely = 600_000

export async function openFixture(name: string): Promise<ReconcileFixture> {
  // Rows that another test leaves unknown in the same database must not matter here.
  const operation = `payments.${crypto.randomUUID()}`
  const place = await openPlace(name)
  const telemetry = recordingTelemetry()
  const latchkey = createLatchkey({ store: place.store, scope: () => 'acme', telemetry })
  const provider = newProvider()
  const running: Workers[] = []
  let receipts = 0
  const pay = latchkey.phased<Pay>(operation, { version: 1, leaseMs: 30_000 }, async (x, { label }) => {
    await x.phase('record', tx => place.insert(tx, `${label}/record`))
    const charge = await x.effect('charge', { timeoutMs: 10_000 }, ({ key }) => chargeAt(provider, { key, label }))
    await x.phase('receipt', async tx => {
      receipts += 1
      await place.insert(tx, `${label}/receipt`)
    })
    return json(201, { label, charge: charge.id })
  })
  const stateOf = async (id: string) => (await place.store.read(id))?.state
  return {
    place,
    telemetry,
    latchkey,
    pay,
    provider,
    reconcile: createReconciler(latchkey),
    receipts: () => receipts,
    stateOf,
    async unknownPayment(label, fault = 'lost') {
      provider.faults.push(fault)
      const error = await pay.run(request(label)).catch((caught: unknown) => caught)
      if (!isLatchkeyError(error, 'outcome-unknown')) throw new Error(`${label} is not unknown: ${String(error)}`)
      return latchkey.identify({ scope: 'acme', operation, key: label })
    },
    async work(options = {}) {
      const workers = createWorkers(latchkey, {
        sweeper: { everyMs: rarely },
        resumer: { everyMs: rarely },
        ...options,
      })
      running.push(workers)
      workers.start()
      await eventually(() => Object.values(workers.health()).every(({ turns }) => turns > 0))
      return workers
    },
    async close() {
      await Promise.all(running.map(workers => workers.drain()))
      await Promise.all(running.map(workers => workers.stop()))
      await latchkey.close()
      await place.close()
    },
  }
}

export function request(label: string): { scope: string; key: string; input: Pay } {
  return { scope: 'acme', key: label, input: { label } }
}

function newProvider(): Provider {
  const charges: Charge[] = []
  return { charges, calls: [], faults: [], find: key => charges.find(charge => charge.key === key) }
}

async function chargeAt(provider: Provider, { key, label }: { key: string; label: string }): Promise<Charge> {
  const charge = { id: `ch-${provider.calls.length}-${key.slice(0, 8)}`, key, label }
  provider.calls.push(key)
  const fault = provider.faults.shift()
  if (fault !== 'lost-before') provider.charges.push(charge)
  if (typeof fault === 'function') await fault(charge)
  else if (fault !== undefined) throw new Error('socket hang up')
  return charge
}

/** What a correct look-up returns. */
export function verdictOf(provider: Provider, key: string): EffectVerdict {
  const charge = provider.find(key)
  return charge === undefined ? { kind: 'never-happened' } : { kind: 'happened', value: charge }
}

/** The webhook of a fixture's provider, as it is mounted. */
export function mountWebhook({ reconcile }: ReconcileFixture): (request: Request) => Promise<Response> {
  return reconcile.webhook<{ charge: Charge }>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [secret] }),
    evidence: ({ charge }) => ({ downstreamKey: charge.key, verdict: { kind: 'happened', value: charge } }),
  })
}

export interface Signing {
  readonly id?: string
  /** Seconds from now. */
  readonly inSeconds?: number
  readonly key?: Buffer
}

export function signedWebhook(
  event: unknown,
  { id = 'msg_1', inSeconds = 0, key = Buffer.alloc(32, 7) }: Signing = {},
): Request {
  const body = JSON.stringify(event)
  const timestamp = String(Math.floor(Date.now() / 1_000) + inSeconds)
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  return new Request('http://shop.test/hooks', { method: 'POST', headers, body })
}
