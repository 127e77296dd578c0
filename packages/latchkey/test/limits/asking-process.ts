/**
 * A process that asks for new keys, eight at a time, until each of the eight has been refused once, or as many times as it is told. Tells how many ran
 * and how many were refused.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { createLatchkey, isLatchkeyError, silentTelemetry } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'

export interface AskingArgument {
  readonly url: string
  readonly newKeysPerMinute: number
}

export interface Asking {
  readonly scope: string
  /** Absent: until they are refused. */
  readonly times?: number
}

export interface Asked {
  readonly ran: number
  readonly refused: number
}

const { url, newKeysPerMinute }: AskingArgument = JSON.parse(process.argv[2] ?? '{}')
const pool = new pg.Pool({ connectionString: url, max: 8 })
const latchkey = createLatchkey({
  ...{ store: postgresStore({ pool }), scope: () => '', telemetry: silentTelemetry, maintenance: false },
  limits: { newKeysPerMinute, shared: true },
})
const pay = latchkey.guarded('pay', { onFailure: 'hold' })

async function isGranted(scope: string): Promise<boolean> {
  try {
    await pay.run({ scope, key: randomUUID(), input: 1 }, () => 1)
    return true
  } catch (error) {
    if (isLatchkeyError(error, 'limit-exceeded')) return false
    throw error
  }
}

async function ask({ scope, times }: Asking): Promise<Asked> {
  const asked = { ran: 0, refused: 0 }
  async function one(max: number): Promise<void> {
    for (let n = 0; n < max; n++) {
      if (await isGranted(scope)) asked.ran += 1
      else return void (asked.refused += 1)
    }
  }
  if (times !== undefined) await one(times)
  else await Promise.all(Array.from({ length: 8 }, () => one(newKeysPerMinute * 2)))
  return asked
}

process.on('message', (asking: Asking) => void ask(asking).then(asked => process.send?.(asked)))
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
