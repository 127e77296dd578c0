/** `createAdmin`, assembled. */
import { checkOptions, type ChecksOf } from '../ports/check-options.ts'
import { anything, callable, count, text } from '../ports/option-kinds.ts'
import type { Admin, AdminOptions } from './admin.ts'
import { rowActs } from './acts.ts'
import { bulkActs } from './bulk/bulk.ts'
import { type AdminHost, contextOf } from './context.ts'
import { messageCalls } from './messages.ts'
import { proposalActs } from './proposals.ts'
import { reads } from './reads.ts'

export interface CreateAdminOptions<Tx> extends AdminOptions {
  readonly latchkey: AdminHost<Tx>
}

const checks: ChecksOf<CreateAdminOptions<unknown>> = {
  latchkey: anything,
  approvals: anything,
  environment: text,
  quarantineMs: callable,
  actsPerMinute: count,
  redact: callable,
}

/** What operators may do on the store of this Latchkey. Who they are, and that they are it, is for the caller to say. */
export function createAdmin<Tx>(options: CreateAdminOptions<Tx>): Admin {
  checkOptions('createAdmin', options, checks)
  const { latchkey, ...rest } = options
  const context = contextOf(latchkey, rest)
  return {
    ...reads(context),
    ...rowActs(context),
    ...proposalActs(context),
    ...messageCalls(context),
    ...bulkActs(context),
  }
}
