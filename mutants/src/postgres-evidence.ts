/** Known bugs in how PostgreSQL keeps and applies evidence, and in what stays of a row after its time. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/postgres'
const conforms = (test: string): NamedTest => ({ path: `${folder}/conformance.pg.test.ts`, test })

const early = `when e.verdict = 'never-happened' and e.at < \${quarantineEnd} then`
const raised = 'then p.epoch + 1 else p.epoch end'
const raisedOnce = conforms(
  'raises the epoch of the open effect by one, once, when it never happened, and the fence stays',
)

export const postgresEvidenceMutants: readonly Mutant[] = [
  {
    name: 'postgres: no quarantine',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: early,
        replace: `when e.verdict = 'never-happened' and \${quarantineEnd} is null then`,
      },
    ],
    caughtBy: [
      conforms('refuses a "never happened" inside the quarantine, says what is left of it, and never counts it later'),
      conforms('raises no epoch inside the quarantine'),
    ],
  },
  {
    name: 'postgres: an early negative counts later',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: early,
        replace: `when e.verdict = 'never-happened' and \${sql.now} < \${quarantineEnd} then`,
      },
    ],
    caughtBy: [
      conforms('counts no "never happened" that was found inside the quarantine or before it, though applied after it'),
    ],
  },
  {
    name: 'postgres: evidence applied in any state',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: 'from ${sql.keys} k join ${sql.due} d on d.id = k.id',
        replace: 'from ${sql.keys} k left join ${sql.due} d on d.id = k.id',
      },
      {
        file: `${folder}/reconcile/apply.ts`,
        find: 'where k.id = $1::uuid and k.state = ${state.unknown} and k.fence',
        replace: 'where k.id = $1::uuid and k.fence',
      },
      { file: `${folder}/reconcile/apply.ts`, find: 'for update of k, d', replace: 'for update of k' },
      {
        file: `${folder}/reconcile/settle.ts`,
        find: `and k.fence = j.fence and k.state = \${state.unknown} and j.kind = 'settled'`,
        replace: `and k.fence = j.fence and j.kind = 'settled'`,
      },
      {
        file: `${folder}/reconcile/settle.ts`,
        find: 'set state = j.settles_to, parked_at = null,',
        replace: 'set state = j.settles_to, parked_at = null, locked_until = null,',
      },
    ],
    caughtBy: [
      conforms('applies nothing to a row in another state, says which, and leaves the evidence kept'),
      conforms('keeps evidence about queued work and applies none: it is not unknown'),
    ],
  },
  {
    name: 'postgres: epoch never raised',
    patches: [{ file: `${folder}/reconcile/settle.ts`, find: raised, replace: 'then p.epoch else p.epoch end' }],
    caughtBy: [
      raisedOnce,
      conforms('raises the epoch of an open effect that a person says never happened, at once, and the row waits'),
    ],
  },
  {
    name: 'postgres: epoch raised without evidence',
    patches: [
      { file: `${folder}/steps/journal.ts`, find: `epoch = 'p.epoch'`, replace: `epoch = 'p.epoch + 1'` },
      { file: `${folder}/reconcile/settle.ts`, find: raised, replace: 'then p.epoch + 1 else p.epoch + 1 end' },
    ],
    caughtBy: [conforms('lets phased work go on, in the same epoch, whose late owner proves that nothing happened')],
  },
  {
    name: "postgres: fence reset by the operator's settle, and by evidence",
    patches: [
      {
        file: `${folder}/reconcile/settle.ts`,
        find: 'update ${sql.keys} k set state = j.settles_to, parked_at = null,',
        replace: 'update ${sql.keys} k set state = j.settles_to, parked_at = null, fence = 1,',
      },
    ],
    caughtBy: [conforms('leaves the fence of a later attempt as it is, whoever settles it')],
  },
  {
    name: 'postgres: replayed delivery accepted',
    patches: [
      {
        file: `${folder}/reconcile/keep.ts`,
        find: 'where m.signed_at_ms < excluded.signed_at_ms',
        replace: 'where m.signed_at_ms <= excluded.signed_at_ms',
      },
    ],
    caughtBy: [
      conforms('refuses a delivery that is not signed later than the one it knows'),
      conforms('takes one of many equal deliveries that arrive at once'),
    ],
  },
  {
    name: 'postgres: evidence of an earlier generation applied',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: `when e.at < r.created_at or e.verdict = 'unknown'`,
        replace: `when e.verdict = 'unknown'`,
      },
    ],
    caughtBy: [conforms('never applies evidence of an earlier life of a key to a later one')],
  },
  {
    name: 'postgres: look-up fence ignored',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: 'is distinct from (r.id, r.fence, r.look) then',
        replace: 'is distinct from (r.id, $6::bigint, $7::bigint) then',
      },
    ],
    caughtBy: [
      conforms('grants the next look-up, with a higher number, when the lease of one ran out, and refuses the old one'),
      conforms('refuses the word of who has another number, another fence or another row'),
    ],
  },
  {
    name: 'postgres: a late answer for the whole taken while an effect is open',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: 'k.state = ${state.unknown} and not ${hasOpenEffect(sql)}',
        replace: 'k.state = ${state.unknown}',
      },
    ],
    caughtBy: [
      conforms('takes no answer for the whole from a late owner while an effect is open, and keeps it as evidence'),
    ],
  },
  {
    name: 'postgres: tombstone granted',
    patches: [
      {
        file: `${folder}/sql/fragments.ts`,
        find: 'and coalesce(${tombstoneEnd}, k.expires_at) <= ${now})',
        replace: 'and k.expires_at <= ${now})',
      },
    ],
    caughtBy: [
      conforms('knows after the retention that the row is gone, and never grants it, whoever asks for it'),
      conforms('queues nothing over a tombstone'),
      conforms('reserves nothing over a tombstone'),
    ],
  },
]
