/** Liveness: after the faults have stopped and everything had time to finish, nothing is left half-way. */
import { type Evidence, groupBy, type KeyRow, type Violation } from './facts.ts'

export function checkEnd(evidence: Evidence): Violation[] {
  return [...evidence.facts.keys.flatMap(settled), ...answered(evidence), ...receipts(evidence), ...died(evidence)]
}

/** Whatever happens to its database and its provider, a process exits only if it is killed or asked to. */
function died({ nemesis }: Evidence): Violation[] {
  return nemesis
    .filter(({ kind }) => kind === 'app-died')
    .map(({ app, detail = '' }) => ({ kind: 'process-died', key: `app-${app}`, detail: `${detail}; see its log` }))
}

function settled({ key, operation, state, parked, leaseDead, listed }: KeyRow): Violation[] {
  if (state === 'in_progress')
    return [{ kind: 'left-in-progress', key, detail: `${operation}, its lease is ${leaseDead ? 'dead' : 'alive'}` }]
  if (state !== 'unknown' || parked) return []
  // Every unknown in this run can be looked up at the provider.
  return [{ kind: listed ? 'unsettled-unknown' : 'unlisted-unknown', key, detail: operation }]
}

/** Every key has a final answer, or its row waits for a person. Unknown rows are reported above. */
function answered({ clients, facts }: Evidence): Violation[] {
  const rows = new Map(facts.keys.map(row => [row.key, row]))
  return [...groupBy(clients, event => event.key)].flatMap(([key, events]): Violation[] => {
    if (events.some(({ type, misuse }) => type === 'ok' && misuse !== true)) return []
    const row = rows.get(key)
    if (row !== undefined && (row.state === 'unknown' || row.parked)) return []
    const last = events.findLast(({ type, foreign }) => type !== 'invoke' && foreign !== true)
    const accepted = events.some(({ status }) => status === 202)
    return [
      {
        kind: accepted ? 'accepted-without-end' : 'stuck',
        key,
        detail: `the row is ${row?.state ?? 'absent'}, and the client last got ${JSON.stringify(last)}`,
      },
    ]
  })
}

/** The rows of `receipts` were written with their messages: each arrives, none from a rollback, in the order of the account. */
function receipts({ facts, receipts: arrivals }: Evidence): Violation[] {
  const nameOf = ({ account, seq }: { account: string; seq: number }) => `${account} ${seq}`
  const written = new Map(facts.receipts.map(row => [nameOf(row), row]))
  const accepted = new Set(arrivals.filter(({ answered: how }) => how === 'accepted').map(nameOf))
  const parked = new Set(facts.parkedReceipts)
  const blocked = new Set(facts.receipts.filter(({ key }) => parked.has(key)).map(({ account }) => account))
  const undelivered = facts.receipts
    .filter(row => !accepted.has(nameOf(row)) && !blocked.has(row.account))
    .map((row): Violation => ({ kind: 'receipt-undelivered', key: row.key, detail: nameOf(row) }))
  const fromNowhere = arrivals
    .filter(arrival => written.get(nameOf(arrival))?.key !== arrival.key)
    .map((arrival): Violation => ({ kind: 'receipt-from-nowhere', key: arrival.key, detail: nameOf(arrival) }))
  return [...undelivered, ...fromNowhere, ...outOfOrder(arrivals)]
}

function outOfOrder(arrivals: Evidence['receipts']): Violation[] {
  return [...groupBy(arrivals, ({ account }) => account).values()].flatMap(ofAccount => {
    let highest = 0
    return ofAccount.flatMap(({ seq, key, account }): Violation[] => {
      // A duplicate may arrive at any time; a first arrival must be the next one.
      if (seq <= highest) return []
      const expected = highest + 1
      highest = seq
      return seq === expected
        ? []
        : [{ kind: 'receipt-out-of-order', key, detail: `${account}: ${seq} before ${expected}` }]
    })
  })
}
