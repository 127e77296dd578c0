/** A person who reads the provider's ledger now and then, and settles what is found there, with a name and a reason. */
import type { OperatorVerdict } from 'latchkey'
import type { Charge } from '../../../examples/payments/src/charge.ts'
import type { KeyServer } from '../keys/key-server.ts'

export interface Looking {
  readonly keys: Pick<KeyServer, 'oldestUnknown'>
  readonly charges: () => Promise<readonly Charge[]>
  /** An application process to send the verdict to. Undefined: none listens. */
  readonly url: () => string | undefined
}

export interface Settlement {
  readonly id: string
  readonly verdict: OperatorVerdict
}

/** Settles only as `happened`: a person could conclude `never-happened` too early. Returns whether a row was settled. */
export async function settleOne({ keys, charges, url }: Looking): Promise<boolean> {
  const row = await keys.oldestUnknown()
  const charge = (await charges()).find(({ reference = '' }) => row !== undefined && reference.endsWith(row.id))
  const to = url()
  if (row === undefined || charge === undefined || to === undefined) return false
  const settlement: Settlement = { id: row.id, verdict: verdictOf(row.operation, charge.id) }
  const request = { method: 'POST', body: JSON.stringify(settlement), signal: AbortSignal.timeout(3_000) }
  return fetch(`${to}/operator`, request).then(
    ({ ok }) => ok,
    () => false,
  )
}

function verdictOf(operation: string, id: string): OperatorVerdict {
  return operation === 'payouts.create'
    ? { kind: 'happened', status: 201, json: { charge: id } }
    : { kind: 'happened', value: { kind: 'charged', id } }
}
