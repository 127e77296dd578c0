/** The line of a key that was used again for another request: written after the limits, so that a client over them adds none. */
import type { Answer, ExecuteRequest } from '../answer.ts'
import type { Once } from '../run/admit.ts'
import type { Core } from '../runtime.ts'

/** The answer waits for its line, and is the same without it. */
export function recordingMisuse<Tx, W>({ trail }: Core<Tx>, once: Once<W>): Once<W> {
  if (trail === undefined) return once
  return async (request, work) => {
    const answer = await once(request, work)
    if (isMisuse(answer)) await trail.addMisuse(request)
    return answer
  }
}

/** In a transaction of the caller's nothing waits for it: the line might need the caller's own connection, or the lock of its file. */
export async function recordMisuseLater<Tx>(
  { trail }: Core<Tx>,
  request: ExecuteRequest,
  answering: Promise<Answer>,
): Promise<Answer> {
  const answer = await answering
  if (trail !== undefined && isMisuse(answer)) void trail.addMisuse(request)
  return answer
}

function isMisuse(answer: Answer): boolean {
  return answer.kind === 'refused' && answer.refusal.code === 'key-reused'
}
