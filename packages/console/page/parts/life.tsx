/** An empty list proves that somebody looked: who ran when. Where nobody did, the same place is red. */
import type { Overview } from 'latchkey/admin'
import { type LoopState, loopStates } from '../api/worker-health.ts'
import { durationText } from './duration.ts'
import { Age } from './time.tsx'

interface LifeProps {
  readonly overview: Overview | undefined
  readonly readAtMs: number
  /** The loops that this list depends on. */
  readonly loops: readonly string[]
}

export function Life({ overview, readAtMs, loops }: LifeProps) {
  if (overview === undefined) return <span>What the workers report is not known yet.</span>
  const states = loopStates(overview.workers).filter(({ loop }) => loop === 'sweeper' || loops.includes(loop))
  const silent = states.filter(({ isSilent }) => isSilent)
  if (silent.length > 0) return <Silent states={silent} so="An empty list means nothing until it runs again." />
  const missing = loops.filter(name => states.every(({ loop }) => loop !== name))
  return (
    <span>
      {states.map(({ loop, lastTurnMs = 0 }, at) => (
        <span key={loop}>
          {at === 0 ? 'The ' : ', the '}
          {loop} ran <Age ageMs={lastTurnMs} readAtMs={readAtMs} after=" ago" />
        </span>
      ))}
      .{missing.map(loop => ` No process has reported a ${loop}.`)}
    </span>
  )
}

/** `so`: what follows from it for what is shown. */
export function Silent({ states, so }: { states: readonly LoopState[]; so?: string }) {
  return (
    <span class="note note-bad">
      {states.map(({ loop, lastTurnMs, process }) => (
        <span key={loop}>
          <strong>The {loop} is silent.</strong> {whySilent(lastTurnMs, process)}{' '}
        </span>
      ))}
      {so}
    </span>
  )
}

function whySilent(lastTurnMs: number | undefined, process: string | undefined): string {
  if (process === undefined) return 'No process has reported one: start createWorkers somewhere.'
  if (lastTurnMs === undefined) return `It has started in ${process}, and its first turn is not over.`
  return `Last turn ${durationText(lastTurnMs)} ago, in ${process}: look at that process.`
}
