/** What a request ends, and what it stores, is noted in the figures of its scope. */
import type { GrantedFrom } from '../../ports/store.ts'
import type { Answer } from '../answer.ts'
import type { Once } from '../run/admit.ts'
import type { ScopeFigures } from './scope-figures.ts'

export interface Figures {
  readonly openKeys: readonly ScopeFigures[]
  readonly storedBytes: readonly ScopeFigures[]
}

export function withFigures<W>({ openKeys, storedBytes }: Figures, once: Once<W>): Once<W> {
  if (openKeys.length + storedBytes.length === 0) return once
  return async (request, work) => {
    const { scope } = request.identity
    let isGranted = false
    const onGrant = (from: GrantedFrom) => {
      isGranted = true
      request.onGrant?.(from)
    }
    const answer = await once({ ...request, onGrant }, work)
    if (!isGranted || answer.kind !== 'executed' || answer.stored !== 'yes') return answer
    for (const figures of openKeys) figures.change(scope, -1)
    for (const figures of storedBytes) figures.change(scope, bytesOf(answer))
    return answer
  }
}

/** More than is stored of it, if it is over `outcomeBytesMax`; the next count knows better. */
function bytesOf({ attempt }: Extract<Answer, { kind: 'executed' }>): number {
  return attempt.kind === 'answered' ? (attempt.outcome.body?.byteLength ?? 0) : 0
}
