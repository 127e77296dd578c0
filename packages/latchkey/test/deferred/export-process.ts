/**
 * A process with a resumer and one deferred export. Its first run stops behind the first step and its second behind the second, until
 * somebody ends the process. Started by fork with a JSON argument.
 */
import { createLatchkey, json, singleTenant } from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import { openPlace } from '../processes/database.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'

export interface ExportArgument {
  readonly place: string
  readonly leaseMs: number
}

/** Behind which step it stands. */
export interface FromExport {
  readonly behind: string
}

const argument: ExportArgument = JSON.parse(process.argv[2] ?? '{}')
const place = await openPlace(argument.place)
const latchkey = createLatchkey({ store: place.store, scope: singleTenant, telemetry: silentTelemetry })
const { leaseMs } = argument

/** The parent kills it here; if it has gone itself, `disconnect` ends it. */
function standStill(behind: string): Promise<never> {
  process.send?.({ behind } satisfies FromExport)
  return new Promise(() => {})
}

const options = { deadlineMs: 3_600_000, leaseMs }
latchkey.deferred<{ label: string }>('exports.create', options, async (x, { label }) => {
  await place.countExecution(`${label}/run`)
  await x.phase('collect', tx => place.insert(tx, `${label}/collect`))
  if (x.attempt === 1) await standStill('collect')
  const file = await x.effect('upload', { dedup: { windowMs: 3_600_000 }, timeoutMs: 1_000 }, async ({ key }) => {
    await place.countExecution(`${label}/upload`)
    return key
  })
  if (x.attempt === 2) await standStill('upload')
  await x.phase('write', tx => place.insert(tx, `${label}/write`))
  return json(201, { label, file })
})

process.once('disconnect', () => process.exit(1))
createWorkers(latchkey, { only: ['resumer'], resumer: { everyMs: 50 } }).start()
