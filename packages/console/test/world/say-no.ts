import { createAdmin } from 'latchkey/admin'
import { type Name, people } from './people.ts'
import { quarantineMs, type Shop } from './shop.ts'

export interface SaidNo {
  readonly id: string
  readonly by: Name
  readonly approvedBy: Name
  readonly reason: string
}

/** One person proposes it, another approves. */
export async function sayNo({ latchkey }: Shop, { id, by, approvedBy, reason }: SaidNo): Promise<void> {
  const admin = createAdmin({ latchkey, quarantineMs: () => quarantineMs })
  const proposer = { who: people[by], source: 'console' } as const
  const found = await admin.key(proposer, id)
  const version = found.kind === 'found' ? found.value.version : ''
  const evidence = { kind: 'ticket', reference: '4711' } as const
  const given = { id, version, reason, effect: 'charge', answer: 'did_not_happen', evidence } as const
  const outcome = await admin.settle(proposer, given)
  if (outcome.kind !== 'second-person-needed') throw new Error(`expected a proposal (got ${outcome.kind})`)
  const { proposalId } = outcome.proposal
  await admin.approve({ who: people[approvedBy], source: 'console' }, { proposalId, reason })
}
