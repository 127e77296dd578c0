/** What went wrong, for people: what happened, and what to do. */
import { useEffect } from 'preact/hooks'
import type { Problem } from '../api/request.ts'
import { announce } from './announce.tsx'
import { durationText } from './duration.ts'

export function ProblemNote({ problem }: { problem: Problem | undefined }) {
  const text = problem && problemText(problem)
  useEffect(() => {
    if (text !== undefined) announce(text)
  }, [text])
  if (problem === undefined) return null
  return (
    <p class="note note-bad">
      <strong>{problem.code}</strong> {text}
    </p>
  )
}

const cures: Readonly<Record<string, (members: Problem['members']) => string>> = {
  'row-moved': () => 'The row has moved since you read it. Nothing was done.',
  'not-permitted': ({ right }) => `You do not have the right ${String(right)}. Ask a person who has it.`,
  'no-such-route': () => 'There is nothing at this address. If it is the id of a row, it may be incomplete.',
  'not-authenticated': () => 'You are not signed in, or not any more. Sign in again, then reload this page.',
  'not-found': () => 'There is no such row, or it belongs to a scope that you may not see.',
  'quarantine-not-over': ({ leftMs }) =>
    `It is too early to say no: the provider may still execute the request. Answer again in ${durationText(Number(leftMs))}, or give the provider's explicit denial.`,
  'too-soon': ({ leftMs }) => `The provider was asked a moment ago. Ask again in ${durationText(Number(leftMs))}.`,
  'too-many-acts': ({ retryAfterMs }) =>
    `You have done more in this minute than one person may. Continue in ${durationText(Number(retryAfterMs))}.`,
  'own-proposal': () => 'You made this proposal. Another person has to decide it.',
  'proposal-closed': ({ state }) => `The proposal is ${String(state)} already.`,
  'wrong-verdict': ({ needs, effect }) =>
    needs === 'value'
      ? `The result of ${typeof effect === 'string' ? effect : 'the effect'} is missing: enter it as the provider gave it.`
      : 'The answer for clients is missing: a status and a JSON body.',
}

function problemText({ code, title, detail, members }: Problem): string {
  const why = typeof members['why'] === 'string' ? members['why'] : undefined
  return cures[code]?.(members) ?? why ?? detail ?? title
}
