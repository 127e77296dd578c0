/** A process that completes work, or hands lines to a sink, until it is killed. Started by fork with a JSON argument. */
import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { createLatchkey } from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import { openPlace } from '../processes/database.ts'

export interface TrailArgument {
  readonly place: string
  readonly name: string
  /** The sink appends the numbers of its lines to this file. Absent: the process completes work. */
  readonly sinkFile?: string
}

/** How many have been completed, or handed to the sink. */
export interface FromTrail {
  readonly count: number
}

const { place, name, sinkFile }: TrailArgument = JSON.parse(process.argv[2] ?? '{}')
const { store } = await openPlace(place)
process.once('disconnect', () => process.exit(1))
let count = 0
const tell = (more: number) => process.send?.({ count: (count += more) } satisfies FromTrail)
const common = { store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false }

if (sinkFile === undefined) {
  const latchkey = createLatchkey({ ...common, audit: { records: 'changes' } })
  const pay = latchkey.guarded('pay', { onFailure: 'rerun' })
  const order = latchkey.atomic('order')
  const work = async (worker: number) => {
    for (let n = 0; ; n += 1) {
      const request = { scope: 'acme', key: `${name} ${worker} ${n}`, input: 1 }
      await (n % 2 === 0 ? pay.run(request, async () => n) : order.run(request, async () => n))
      tell(1)
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, worker) => work(worker)))
} else {
  const latchkey = createLatchkey({
    ...common,
    audit: {
      records: 'changes',
      async sink(lines) {
        appendFileSync(sinkFile, lines.map(({ lineId }) => `${lineId}\n`).join(''))
        tell(lines.length)
        // The test kills it here, as a rule.
        await delay(30)
      },
    },
  })
  createWorkers(latchkey, { only: ['auditor'], auditor: { everyMs: 20, batch: 5 } }).start()
}
