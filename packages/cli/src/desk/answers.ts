/** What a refusal means to the shell, and to a person. */
import type { ActOutcome, AdminRow, BulkOutcome, BulkPlan, Proposal, Read, Refusal } from 'latchkey/admin'
import { durationText } from '../program/duration.ts'
import { CliError, type Exit, exits } from '../program/exit.ts'
import { unreachable } from './unreachable.ts'

/** The value of a read. `what`: for the error. */
export function found<T>(read: Read<T>, what: string): T {
  if (read.kind === 'found') return read.value
  throw refused(read, what)
}

export interface Done {
  readonly row: AdminRow | undefined
  readonly auditId: string
}

/** What an act came to. A second person who is needed is a guard as well: nothing has happened yet. */
export function done(outcome: ActOutcome, what: string): Done {
  if (outcome.kind === 'done') return outcome
  if (outcome.kind === 'second-person-needed') throw waitsForSecond(outcome.proposal, what)
  throw refused(outcome, what)
}

export function planned(outcome: BulkOutcome, what: string): BulkPlan {
  if ('plan' in outcome) return outcome.plan
  throw refused(outcome, what)
}

function waitsForSecond({ proposalId, act }: Proposal, what: string): CliError {
  const message = `${what}: ${act} needs a second person. It is proposed as ${proposalId}; another person runs latchkey proposals approve ${proposalId}`
  return new CliError(exits.refused, 'second-person-needed', message)
}

export function refused(refusal: Refusal, what: string): CliError {
  return new CliError(exitOf(refusal.kind), refusal.kind, `${what}: ${textOf(refusal)}`)
}

function exitOf(kind: Refusal['kind']): Exit {
  if (kind === 'not-found') return exits.notFound
  return kind === 'invalid' || kind === 'not-supported' ? exits.usage : exits.refused
}

function textOf(refusal: Refusal): string {
  switch (refusal.kind) {
    case 'not-permitted':
      return `you lack the right ${refusal.right}`
    case 'not-found':
      return 'there is no such thing'
    case 'row-moved':
      return `it has moved since it was read: it is ${refusal.row.state} now, at version ${refusal.row.version}. Look at it again`
    case 'wrong-state':
      return `it is ${refusal.state}: ${refusal.why}`
    case 'wrong-verdict':
      return refusal.needs === 'value'
        ? `the answer must be about the effect ${refusal.effect}: give --effect ${refusal.effect}, with --value if its result is more than a reference`
        : 'the answer must be about the whole: give the response that clients get, with --status and --response'
    case 'quarantine-not-over':
      return `it is too early to say that it did not happen: the request may still be on its way. The quarantine is over in ${durationText(refusal.leftMs)}. A written denial of the provider counts now: --evidence denial:…`
    case 'too-soon':
      return `it was asked for already; try again in ${durationText(refusal.leftMs)}`
    case 'too-many-acts':
      return `you have done too much in one minute; try again in ${durationText(refusal.retryAfterMs)}`
    case 'own-proposal':
      return 'it is your own proposal: another person must decide'
    case 'proposal-closed':
      return `it is ${refusal.state}, and cannot be decided any more`
    case 'not-supported':
    case 'invalid':
      return refusal.why
    default:
      return unreachable(refusal)
  }
}
