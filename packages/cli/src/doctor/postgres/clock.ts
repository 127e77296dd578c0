/** The clock of this machine against that of the server. Leases follow the server's alone; ages of keys and signatures do not. */
import { type Check, ok } from '../finding.ts'
import type { PostgresUnderCheck } from './under-check.ts'

/** Below this it is the network, or a clock that is being corrected. */
const skewWarnMs = 2_000
/** Webhooks are refused from five minutes on, and what people read is wrong long before. */
const skewFailMs = 60_000

export function clockCheck({ pool, clock }: Pick<PostgresUnderCheck, 'pool' | 'clock'>): Check {
  return {
    name: 'clock',
    async look() {
      // The first statement may have to connect.
      await pool.query('select 1')
      const sentAtMs = clock.nowMs()
      const { rows } = await pool.query<{ now_ms: string }>(
        'select extract(epoch from pg_catalog.clock_timestamp()) * 1000 as now_ms',
      )
      const middleMs = (sentAtMs + clock.nowMs()) / 2
      const skewMs = Math.round(Number(rows[0]?.now_ms) - middleMs)
      if (Math.abs(skewMs) <= skewWarnMs) return ok(`this machine and the server differ by ${Math.abs(skewMs)} ms`)
      const which = skewMs > 0 ? 'behind' : 'ahead of'
      return [
        {
          verdict: Math.abs(skewMs) > skewFailMs ? 'FAIL' : 'warn',
          text: `the clock of this machine is ${Math.round(Math.abs(skewMs) / 1_000)} s ${which} the server's`,
          cure: 'let both follow a time server: look at timedatectl, or chronyc tracking, on each',
        },
      ]
    },
  }
}
