/** A deferred export over HTTP whose worker is killed twice, whichever store keeps it. Run by a test file per store. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { serve, type ServerType } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { createLatchkey, json, type Latchkey } from 'latchkey'
import { idempotent, statusOf } from 'latchkey/http/hono'
import { forkProgram } from '../../../../test/programs/program.ts'
import { eventually } from '../engine/fixture.ts'
import { openPlace, type Place } from '../processes/database.ts'
import type { ExportArgument, FromExport } from './export-process.ts'

/** Dead work is taken over after this; nothing that is alive stands still here. */
const leaseMs = 1_500
/** Processes start slowly on a busy machine; a condition is waited for, not a time. */
const patienceMs = 120_000

interface Told {
  readonly state: string
  readonly step: string | null
  readonly attempts: number
  readonly outcome?: { readonly status: number; readonly body: { readonly label: string; readonly file: string } }
}

export function itEndsOnce(placeName: () => string): void {
  let place: Place
  let latchkey: Latchkey<unknown, Context>
  let server: ServerType
  let url: string
  const running: ChildProcess[] = []

  beforeAll(async () => {
    place = await openPlace(placeName())
    await place.migrate()
    latchkey = createLatchkey({ store: place.store, scope: (c: Context) => c.req.header('x-tenant') ?? '' })
    // Declared as in the worker; here it is only asked for.
    const report = latchkey.deferred<{ label: string }>('exports.create', { deadlineMs: 3_600_000 }, async () =>
      json(500, 'not here'),
    )
    const app = new Hono()
    app.post('/exports', idempotent(report, { input: (c: Context) => c.req.json() }))
    app.get('/operations/:id', statusOf(latchkey))
    const info = await new Promise<AddressInfo>(resolve => {
      server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, resolve)
    })
    url = `http://127.0.0.1:${info.port}`
  })
  afterEach(() => Promise.all(running.splice(0).map(kill)))
  afterAll(async () => {
    await new Promise(closed => server.close(closed))
    await latchkey.close()
    await place.close()
  })

  async function worker(): Promise<ChildProcess> {
    const argument: ExportArgument = { place: placeName(), leaseMs }
    const child = await forkProgram(new URL('./export-process.ts', import.meta.url), [JSON.stringify(argument)])
    running.push(child)
    return child
  }

  const post = () =>
    fetch(`${url}/exports`, {
      method: 'POST',
      headers: { 'Idempotency-Key': 'k', 'Content-Type': 'application/json', 'x-tenant': 'acme' },
      body: '{"label":"big"}',
    })

  it('ends once although its worker is killed twice, and its poller sees it move', { timeout: 300_000 }, async () => {
    const first = await post()
    expect(first.status).toBe(202)
    const at = url + first.headers.get('Location')
    const look = async (tenant = 'acme') => fetch(at, { headers: { 'x-tenant': tenant } })
    const told = async () => (await (await look()).json()) as Told
    const seen: unknown[] = []
    const note = async () => {
      const { state, step, attempts } = await told()
      seen.push([state, step, attempts])
      expect((await look('evil')).status).toBe(404)
      expect(await (await post()).text()).toBe(await first.clone().text())
    }
    await note()
    for (const behind of ['collect', 'upload']) {
      const child = await worker()
      const [message] = (await once(child, 'message')) as [FromExport]
      expect(message).toEqual({ behind })
      await note()
      await kill(child)
    }
    await worker()
    await eventually(async () => (await told()).state === 'completed', patienceMs)
    const { step, attempts, outcome } = await told()
    seen.push(['completed', step, attempts])
    expect(seen).toEqual([
      ['pending', null, 0],
      ['in_progress', 'collect', 1],
      ['in_progress', 'upload', 2],
      ['completed', 'write', 3],
    ])
    expect(outcome).toMatchObject({ status: 201, body: { label: 'big' } })
    const retry = await post()
    expect([retry.status, retry.headers.get('Idempotent-Replayed')]).toEqual([201, 'true'])
    expect(await retry.json()).toEqual(outcome?.body)
    expect((await look('evil')).status).toBe(404)
    const counts = [place.businessRows('big/collect'), place.businessRows('big/write'), place.executions('big/upload')]
    expect(await Promise.all(counts)).toEqual([1, 1, 1])
    expect(await place.executions('big/run')).toBe(3)
  })
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
