/** What a verdict holds beside its kind, as arguments of a script. */
import type { FoundVerdict } from '../../../ports/reconciliation.ts'
import { packOutcome } from '../../shared/packed-outcome.ts'
import { optional } from '../connection/script.ts'
import type { RedisArgument } from '../../shared/redis/driver.ts'

/** `content` is `outcome`, `value` or empty; `answer` the outcome's bytes, without a fence; `value` that of an effect. */
export const verdictArgs: readonly string[] = ['verdict', 'content', 'answer', 'value']

export function verdictArguments(verdict: FoundVerdict): RedisArgument[] {
  if ('outcome' in verdict) return [verdict.kind, 'outcome', packOutcome(verdict.outcome, 0), '-']
  if ('value' in verdict) return [verdict.kind, 'value', '', optional(verdict.value)]
  return [verdict.kind, '', '', '-']
}
