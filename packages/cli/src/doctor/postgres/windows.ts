/** Keys that are forgotten before their provider forgets them: a late retry runs again here, and is answered there from memory. */
import { durationText } from '../../program/duration.ts'
import { type Check, ok } from '../finding.ts'
import { type PostgresUnderCheck, quoted } from './under-check.ts'

/** Enough to meet every operation of a busy service, and read in no time. */
const stepsMax = 10_000

export function windowsCheck({ pool, schema }: Pick<PostgresUnderCheck, 'pool' | 'schema'>): Check {
  return {
    name: 'retention',
    async look() {
      const { rows } = await pool.query<{ operation: string; effect: string; window_ms: string; kept_ms: string }>(
        `select k.operation, s.name as effect,
          extract(epoch from max(s.repeat_until - s.opened_at)) * 1000 as window_ms,
          extract(epoch from min(k.expires_at - coalesce(k.completed_at, k.created_at))) * 1000 as kept_ms
        from (select id, name, opened_at, repeat_until from ${quoted(schema)}.steps where repeat_until is not null limit ${stepsMax}) s
        join ${quoted(schema)}.keys k on k.id = s.id
        where k.expires_at < s.repeat_until
        group by 1, 2 order by 1, 2`,
      )
      if (rows.length === 0) return ok('no key is forgotten before its provider forgets it')
      return rows.map(({ operation, effect, window_ms, kept_ms }) => ({
        verdict: 'warn' as const,
        text: `${operation} retains its keys for ${durationText(Number(kept_ms))}, and the provider of ${effect} recognises its own for ${durationText(Number(window_ms))}`,
        cure: `raise retentionMs of ${operation} above the window of ${effect}`,
      }))
    },
  }
}
